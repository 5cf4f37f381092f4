//! Undefined symbols, and the lookup of definitions by the rules of glibc's `do_lookup_x` and `check_match`.

use super::versions::Versions;
use super::window::Part;
use super::{gnu_hash, sysv_hash};

const SYMBOL: u64 = 24;
/// Undefined symbols and bytes of a name that anything real has fewer of.
const MAX_UNDEFINED: u32 = 4 << 20;
const MAX_NAME: usize = 1 << 20;
/// Steps in one hash chain: a circle in a System V table must end.
const MAX_CHAIN: u32 = 1 << 20;

const STB_LOCAL: u8 = 0;
const STB_WEAK: u8 = 2;
const SHN_ABS: u16 = 0xfff1;
const STT_TLS: u8 = 6;
/// `NOTYPE`, `OBJECT`, `FUNC`, `COMMON`, `TLS` and `GNU_IFUNC`: the types that a reference can be bound to.
const BINDABLE: u16 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 10;

/// A symbol that a file needs from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undefined {
    /// Its number in the file.
    pub number: u32,
    /// Its name, mangled.
    pub name: String,
    /// Staying undefined is no fault.
    pub weak: bool,
    /// The file that its version names, the version, and whether only an exact match will do.
    pub version: Option<(String, String, bool)>,
}

/// A reference to be resolved.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    name: &'a [u8],
    gnu: u32,
    sysv: u32,
    version: Option<(&'a str, u32, bool)>,
}

impl<'a> Asked<'a> {
    /// What `undefined` asks for.
    pub fn new(undefined: &'a Undefined) -> Self {
        Self::symbol(
            &undefined.name,
            undefined
                .version
                .as_ref()
                .map(|(_, v, hidden)| (v.as_str(), *hidden)),
        )
    }

    /// A symbol by name, with its version and whether that must match exactly.
    pub fn symbol(name: &'a str, version: Option<(&'a str, bool)>) -> Self {
        let name = name.as_bytes();
        Self {
            name,
            gnu: gnu_hash(name),
            sysv: sysv_hash(name),
            version: version.map(|(v, hidden)| (v, sysv_hash(v.as_bytes()), hidden)),
        }
    }
}

#[derive(Debug)]
struct GnuTable {
    part: Part,
    buckets: u32,
    first: u32,
    bloom_words: u32,
    bloom_shift: u32,
}

#[derive(Debug)]
enum Table {
    Gnu(GnuTable),
    SysV { part: Part, buckets: u32, symbols: u32 },
    None,
}

#[derive(Debug)]
pub(crate) struct Symbols {
    entries: Option<Part>,
    strings: Part,
    table: Table,
}

#[derive(Debug, Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
}

impl Symbol {
    fn binding(self) -> u8 {
        self.info >> 4
    }

    fn kind(self) -> u8 {
        self.info & 15
    }
}

impl Symbols {
    pub(crate) fn new(entries: Option<Part>, strings: Part, gnu: Option<Part>, sysv: Option<Part>) -> Self {
        let gnu = gnu.and_then(|part| {
            let table = GnuTable {
                buckets: part.u32(0)?,
                first: part.u32(4)?,
                bloom_words: part.u32(8)?,
                bloom_shift: part.u32(12)?,
                part,
            };
            (table.buckets > 0 && table.bloom_words.is_power_of_two()).then_some(Table::Gnu(table))
        });
        let table = gnu
            .or_else(|| {
                let part = sysv?;
                Some(Table::SysV {
                    buckets: part.u32(0)?,
                    symbols: part.u32(4)?,
                    part,
                })
            })
            .unwrap_or(Table::None);
        Self {
            entries,
            strings,
            table,
        }
    }

    fn symbol(&self, number: u32) -> Option<Symbol> {
        let bytes: [u8; 16] = self.entries.as_ref()?.bytes(u64::from(number) * SYMBOL)?;
        Some(Symbol {
            name: u32::from_le_bytes(bytes[0..4].try_into().ok()?),
            info: bytes[4],
            other: bytes[5],
            section: u16::from_le_bytes(bytes[6..8].try_into().ok()?),
            value: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
        })
    }

    /// Undefined symbols come before the hashed ones in a GNU table; a System V table counts them all.
    pub(crate) fn undefined(&self, versions: &Versions) -> Vec<Undefined> {
        let end = match &self.table {
            // An empty table hashes nothing and says 1: then the symbols reach to the string table, as linkers lay it.
            Table::Gnu(table) => table.first.max(self.empty_end(table)),
            Table::SysV { symbols, .. } => *symbols,
            Table::None => 0,
        };
        let mut found = Vec::new();
        for number in 1..end.min(MAX_UNDEFINED) {
            let Some(symbol) = self.symbol(number) else {
                break;
            };
            if symbol.section != 0 || symbol.binding() == STB_LOCAL {
                continue;
            }
            let Some(name) = self.strings.string(u64::from(symbol.name), MAX_NAME) else {
                continue;
            };
            if name.is_empty() {
                continue;
            }
            let index = versions
                .of_symbol
                .as_ref()
                .and_then(|p| p.u16(u64::from(number) * 2));
            let version = index
                .and_then(|i| versions.need(i & 0x7fff))
                .map(|(file, v)| (file.to_owned(), v.name.clone(), v.hidden));
            found.push(Undefined {
                number,
                name: String::from_utf8_lossy(&name).into_owned(),
                weak: symbol.binding() == STB_WEAK,
                version,
            });
        }
        found
    }

    /// With no hashed symbol, `first` of some linkers is 1 although undefined symbols follow: read on while
    /// entries look like undefined ones.
    fn empty_end(&self, table: &GnuTable) -> u32 {
        let empty = (0..table.buckets).all(|b| {
            table
                .part
                .u32(16 + u64::from(table.bloom_words) * 8 + u64::from(b) * 4)
                == Some(0)
        });
        if !empty {
            return 0;
        }
        let mut number = 1;
        while number < MAX_UNDEFINED {
            match self.symbol(number) {
                Some(s)
                    if s.section == 0
                        && s.value == 0
                        && s.info != 0
                        && u64::from(s.name) < self.strings.size() =>
                {
                    number += 1;
                }
                _ => break,
            }
        }
        number
    }

    pub(crate) fn lookup(&self, asked: &Asked<'_>, versions: &Versions) -> Option<u32> {
        let mut other = Fallback::default();
        let exact = match &self.table {
            Table::Gnu(table) => self.lookup_gnu(table, asked, versions, &mut other),
            Table::SysV {
                part,
                buckets,
                symbols,
            } => self.lookup_sysv(part, *buckets, *symbols, asked, versions, &mut other),
            Table::None => None,
        };
        exact.or_else(|| other.only())
    }

    fn lookup_gnu(
        &self,
        table: &GnuTable,
        asked: &Asked<'_>,
        versions: &Versions,
        other: &mut Fallback,
    ) -> Option<u32> {
        let word = table
            .part
            .u64(16 + u64::from((asked.gnu / 64) & (table.bloom_words - 1)) * 8)?;
        let second = asked.gnu.checked_shr(table.bloom_shift).unwrap_or(0);
        if (word >> (asked.gnu % 64)) & (word >> (second % 64)) & 1 == 0 {
            return None;
        }
        let buckets = 16 + u64::from(table.bloom_words) * 8;
        let chains = buckets + u64::from(table.buckets) * 4;
        let mut number = table
            .part
            .u32(buckets + u64::from(asked.gnu % table.buckets) * 4)?;
        if number < table.first || number == 0 {
            return None;
        }
        loop {
            let hash = table.part.u32(chains + u64::from(number - table.first) * 4)?;
            if (hash ^ asked.gnu) >> 1 == 0 && self.matches(number, asked, versions, other) {
                return Some(number);
            }
            if hash & 1 == 1 {
                return None;
            }
            number = number.checked_add(1)?;
        }
    }

    fn lookup_sysv(
        &self,
        part: &Part,
        buckets: u32,
        symbols: u32,
        asked: &Asked<'_>,
        versions: &Versions,
        other: &mut Fallback,
    ) -> Option<u32> {
        if buckets == 0 {
            return None;
        }
        let mut number = part.u32(8 + u64::from(asked.sysv % buckets) * 4)?;
        for _ in 0..MAX_CHAIN {
            if number == 0 || number >= symbols {
                return None;
            }
            if self.matches(number, asked, versions, other) {
                return Some(number);
            }
            number = part.u32(8 + u64::from(buckets) * 4 + u64::from(number) * 4)?;
        }
        None
    }

    fn matches(&self, number: u32, asked: &Asked<'_>, versions: &Versions, other: &mut Fallback) -> bool {
        let Some(symbol) = self.symbol(number) else {
            return false;
        };
        let hidden_visibility = matches!(symbol.other & 3, 1 | 2);
        let bindable = symbol.kind() < 16 && BINDABLE & (1 << symbol.kind()) != 0;
        let valued = symbol.value != 0 || symbol.section == SHN_ABS || symbol.kind() == STT_TLS;
        if symbol.section == 0
            || symbol.binding() == STB_LOCAL
            || hidden_visibility
            || !bindable
            || !valued
            || !self.strings.is_string(u64::from(symbol.name), asked.name)
        {
            return false;
        }
        let Some(index) = versions
            .of_symbol
            .as_ref()
            .map(|p| p.u16(u64::from(number) * 2).unwrap_or(0))
        else {
            return true;
        };
        let (plain, hidden) = (index & 0x7fff, index & 0x8000 != 0);
        match asked.version {
            Some((name, hash, exact)) => match versions.named(plain) {
                Some((own_hash, own)) => *own_hash == hash && own == name,
                None => !exact && !hidden,
            },
            None if plain >= 3 => {
                if !hidden {
                    other.seen(number);
                }
                false
            }
            None => true,
        }
    }
}

/// A reference without a version is bound to a versioned definition only if that is the only one.
#[derive(Debug, Default)]
struct Fallback {
    first: Option<u32>,
    count: u32,
}

impl Fallback {
    fn seen(&mut self, number: u32) {
        self.first.get_or_insert(number);
        self.count += 1;
    }

    fn only(&self) -> Option<u32> {
        self.first.filter(|_| self.count == 1)
    }
}
