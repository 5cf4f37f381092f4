//! A process as it grows: start, `LD_PRELOAD`, one `dlopen` after another, each with its own scope.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::search::{expand, expand_one};
use super::{Search, Via};
use crate::elf::{Asked, ElfError, Image, Undefined};
use crate::root::{Root, RootError};

/// Number of an object in a [`Process`].
pub type ObjectId = usize;

/// Objects in one process that anything real has fewer of.
const MAX_OBJECTS: usize = 4096;

/// One object that the process has mapped.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Path as the loader formed it; `$ORIGIN` is its directory. For what a driver supplies, the bare name.
    pub path: PathBuf,
    /// The same file with every link followed.
    pub real: PathBuf,
    /// How it was found.
    pub via: Via,
    /// The object whose need brought it in first.
    pub parent: Option<ObjectId>,
    /// What the file says; `None` for what an absent driver would supply.
    pub image: Option<Rc<Image>>,
    names: Vec<String>,
    needs: Vec<ObjectId>,
}

impl Loaded {
    /// Its SONAME, else its file name.
    pub fn name(&self) -> String {
        self.image
            .as_ref()
            .and_then(|i| i.soname.clone())
            .unwrap_or_else(|| file_name(&self.path))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    )
}

/// Why a `dlopen` would fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A library is nowhere on the search path.
    Missing {
        /// Its name.
        library: String,
        /// The file that needs it.
        needed_by: PathBuf,
        /// Files that bear the name and are of another class or machine.
        foreign: Vec<PathBuf>,
    },
    /// A file cannot be read as ELF.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A library lacks a version that is needed of it.
    Version {
        /// The version.
        version: String,
        /// The library that was chosen.
        library: PathBuf,
        /// The file that needs it.
        needed_by: PathBuf,
    },
    /// A symbol is defined nowhere in the scope.
    Undefined {
        /// The symbol, mangled.
        symbol: String,
        /// Its version, where it has one.
        version: Option<String>,
        /// The file that needs it.
        needed_by: PathBuf,
    },
}

/// What a `dlopen` did.
#[derive(Debug, Default)]
pub struct Opened {
    /// The object asked for, unless it failed.
    pub object: Option<ObjectId>,
    /// Objects that this call mapped, in order; they stay only if there was no fault.
    pub new: Vec<(PathBuf, PathBuf)>,
    /// Why it failed.
    pub faults: Vec<Fault>,
    /// What could not be decided: a file that may not be read.
    pub unknown: Vec<String>,
}

impl Opened {
    /// Whether it is certain that the call succeeded.
    pub fn loads(&self) -> bool {
        self.faults.is_empty() && self.unknown.is_empty()
    }
}

/// What was read of files, shared by a process and its clones.
#[derive(Debug, Default)]
struct Seen {
    images: HashMap<PathBuf, Result<Rc<Image>, ElfError>>,
    /// Real paths; `None` where there is nothing.
    located: HashMap<PathBuf, Option<PathBuf>>,
    undefined: HashMap<PathBuf, Rc<Vec<Undefined>>>,
}

/// A simulated process. A clone goes its own way from there.
#[derive(Debug, Clone)]
pub struct Process {
    root: Root,
    search: Rc<Search>,
    objects: Vec<Loaded>,
    by_file: HashMap<PathBuf, ObjectId>,
    by_name: HashMap<String, ObjectId>,
    global: Vec<ObjectId>,
    /// Libraries that the driver supplies: absent is no fault, and their symbols are theirs.
    driver: Vec<String>,
    seen: Rc<RefCell<Seen>>,
}

enum Found {
    Object(ObjectId),
    Missing(Vec<PathBuf>),
    Unreadable(PathBuf, String),
    Unknown(String),
}

impl Process {
    /// A process with nothing in it. `driver` names the libraries that a driver supplies and that may be absent.
    pub fn new(root: Root, search: Search, driver: &[&str]) -> Self {
        Self {
            root,
            search: Rc::new(search),
            objects: Vec::new(),
            by_file: HashMap::new(),
            by_name: HashMap::new(),
            global: Vec::new(),
            driver: driver.iter().map(|d| (*d).to_owned()).collect(),
            seen: Rc::default(),
        }
    }

    /// Starts an executable with `LD_PRELOAD` in force. All that this maps is in the global scope.
    pub fn start(&mut self, executable: &Path, preload: Option<&str>) -> Opened {
        let mut opened = Opened::default();
        // The kernel gives the loader the real path of the executable.
        let real = match self.root.resolve(executable) {
            Ok(real) => real,
            Err(error) => {
                opened.unknown.push(error.to_string());
                return opened;
            }
        };
        let main = match self.map(&real, Via::Path, None) {
            Found::Object(id) => id,
            Found::Unreadable(path, why) => {
                opened.faults.push(Fault::Unreadable { path, why });
                return opened;
            }
            Found::Missing(_) => return opened,
            Found::Unknown(why) => {
                opened.unknown.push(why);
                return opened;
            }
        };
        let mut roots = vec![main];
        for name in preload
            .unwrap_or_default()
            .split([':', ' '])
            .filter(|n| !n.is_empty())
        {
            // A preload that is missing is only talked about.
            if let Found::Object(id) = self.find(name, Some(main), Via::Preload) {
                roots.push(id);
            }
        }
        let list = self.gather(&roots, 0, &mut opened);
        self.global.clone_from(&list);
        self.judge(&list, 0, &mut opened);
        opened.object = Some(main);
        opened.new = self.files_from(0);
        opened
    }

    /// `dlopen(name, RTLD_NOW)` from the main program.
    pub fn open(&mut self, name: &str, global: bool) -> Opened {
        let mut opened = Opened::default();
        let before = self.objects.len();
        let caller = (before > 0).then_some(0);
        let root = match self.find(name, caller, Via::Path) {
            Found::Object(id) => id,
            Found::Missing(foreign) => {
                opened.faults.push(Fault::Missing {
                    library: name.to_owned(),
                    needed_by: PathBuf::new(),
                    foreign,
                });
                return opened;
            }
            Found::Unreadable(path, why) => {
                opened.faults.push(Fault::Unreadable { path, why });
                return opened;
            }
            Found::Unknown(why) => {
                opened.unknown.push(why);
                return opened;
            }
        };
        let list = self.gather(&[root], before, &mut opened);
        opened.new = self.files_from(before);
        if opened.faults.is_empty() {
            self.judge(&list, before, &mut opened);
        }
        if opened.faults.is_empty() {
            if global {
                for id in list {
                    if !self.global.contains(&id) {
                        self.global.push(id);
                    }
                }
            }
            opened.object = Some(root);
        } else {
            self.forget(before);
        }
        opened
    }

    fn files_from(&self, first: usize) -> Vec<(PathBuf, PathBuf)> {
        self.objects
            .iter()
            .skip(first)
            .filter(|o| o.image.is_some())
            .map(|o| (o.path.clone(), o.real.clone()))
            .collect()
    }

    /// A failed call leaves nothing behind.
    fn forget(&mut self, before: usize) {
        self.objects.truncate(before);
        self.by_file.retain(|_, id| *id < before);
        self.by_name.retain(|_, id| *id < before);
    }

    /// Maps what `roots` need, breadth first, and gives the group in search order.
    fn gather(&mut self, roots: &[ObjectId], before: usize, opened: &mut Opened) -> Vec<ObjectId> {
        let mut list: Vec<ObjectId> = roots.to_vec();
        let mut listed: HashSet<ObjectId> = list.iter().copied().collect();
        let mut queue: VecDeque<ObjectId> = list.iter().copied().collect();
        while let Some(id) = queue.pop_front() {
            if id >= before && self.objects.get(id).is_some_and(|o| o.needs.is_empty()) {
                self.map_needs(id, opened);
            }
            let needs = self.objects.get(id).map(|o| o.needs.clone()).unwrap_or_default();
            for need in needs {
                if listed.insert(need) {
                    list.push(need);
                    queue.push_back(need);
                }
            }
        }
        list
    }

    fn map_needs(&mut self, id: ObjectId, opened: &mut Opened) {
        let Some(image) = self.objects.get(id).and_then(|o| o.image.clone()) else {
            return;
        };
        for name in &image.needed {
            if self.objects.len() >= MAX_OBJECTS {
                opened.unknown.push(format!("more than {MAX_OBJECTS} libraries"));
                return;
            }
            match self.find(name, Some(id), Via::Path) {
                Found::Object(need) => {
                    if let Some(object) = self.objects.get_mut(id) {
                        object.needs.push(need);
                    }
                }
                Found::Missing(foreign) => opened.faults.push(Fault::Missing {
                    library: name.clone(),
                    needed_by: self.path_of(id),
                    foreign,
                }),
                Found::Unreadable(path, why) => opened.faults.push(Fault::Unreadable { path, why }),
                Found::Unknown(why) => opened.unknown.push(why),
            }
        }
    }

    fn path_of(&self, id: ObjectId) -> PathBuf {
        self.objects.get(id).map(|o| o.path.clone()).unwrap_or_default()
    }

    /// What is already loaded under this name, else the first file on the search path that can be loaded.
    fn find(&mut self, name: &str, caller: Option<ObjectId>, how: Via) -> Found {
        if let Some(id) = self.by_name.get(name) {
            return Found::Object(*id);
        }
        let machine = self.search.machine;
        if name.contains('/') {
            let origin = caller.map(|c| self.origin(c)).unwrap_or_default();
            let path = PathBuf::from(expand_one(name, &origin, machine));
            let found = self.map(&path, how, caller);
            self.also_named(&found, name);
            return found;
        }
        let mut foreign = Vec::new();
        let mut places: Vec<(Vec<PathBuf>, Via)> = Vec::new();
        let mut bare = false;
        if let Some(id) = caller {
            let image = self.objects.get(id).and_then(|o| o.image.clone());
            bare = image.as_ref().is_some_and(|i| i.no_default_dirs);
            let runpath = image.and_then(|i| i.runpath.clone());
            if runpath.is_none() {
                places.extend(self.inherited_rpaths(id).into_iter().map(|p| (p, Via::Rpath)));
            }
            places.push((self.search.library_path.clone(), Via::LibraryPath));
            if let Some(runpath) = runpath {
                places.push((expand(&runpath, &self.origin(id), machine), Via::Runpath));
            }
        } else {
            places.push((self.search.library_path.clone(), Via::LibraryPath));
        }
        let search = Rc::clone(&self.search);
        for (dirs, via) in places {
            for path in search.in_dirs(&dirs, name) {
                match self.map(&path, if how == Via::Preload { how } else { via }, caller) {
                    Found::Missing(other) => foreign.extend(other),
                    found => {
                        self.also_named(&found, name);
                        return found;
                    }
                }
            }
        }
        let cached: Vec<PathBuf> = self
            .search
            .cache
            .as_ref()
            .map(|c| {
                c.find(name, machine, &self.search.hwcaps)
                    .iter()
                    .map(PathBuf::from)
                    .collect()
            })
            .unwrap_or_default();
        for path in cached {
            if bare && self.search.defaults.iter().any(|d| path.starts_with(d)) {
                continue;
            }
            if let found @ (Found::Object(_) | Found::Unreadable(..) | Found::Unknown(_)) =
                self.map(&path, Via::Cache, caller)
            {
                self.also_named(&found, name);
                return found;
            }
            break;
        }
        if !bare {
            let defaults = self.search.defaults.clone();
            for path in search.in_dirs(&defaults, name) {
                match self.map(&path, Via::Default, caller) {
                    Found::Missing(other) => foreign.extend(other),
                    found => {
                        self.also_named(&found, name);
                        return found;
                    }
                }
            }
        }
        if self.driver.iter().any(|d| d == name) {
            return Found::Object(self.supply(name, caller));
        }
        Found::Missing(foreign)
    }

    /// `DT_RPATH` of the object and of those that brought it in, then of the main program.
    fn inherited_rpaths(&self, id: ObjectId) -> Vec<Vec<PathBuf>> {
        let mut paths = Vec::new();
        let mut at = Some(id);
        let mut main_done = false;
        while let Some(current) = at {
            main_done |= current == 0;
            self.push_rpath(current, &mut paths);
            at = self.objects.get(current).and_then(|o| o.parent);
        }
        if !main_done {
            self.push_rpath(0, &mut paths);
        }
        paths
    }

    fn push_rpath(&self, id: ObjectId, paths: &mut Vec<Vec<PathBuf>>) {
        let rpath = self
            .objects
            .get(id)
            .and_then(|o| o.image.as_ref())
            .and_then(|i| i.rpath.as_deref());
        if let Some(rpath) = rpath {
            paths.push(expand(rpath, &self.origin(id), self.search.machine));
        }
    }

    fn origin(&self, id: ObjectId) -> PathBuf {
        self.objects
            .get(id)
            .and_then(|o| o.path.parent())
            .map(Path::to_owned)
            .unwrap_or_default()
    }

    fn also_named(&mut self, found: &Found, name: &str) {
        if let Found::Object(id) = found
            && let Some(object) = self.objects.get_mut(*id)
            && !object.names.iter().any(|n| n == name)
        {
            object.names.push(name.to_owned());
            self.by_name.entry(name.to_owned()).or_insert(*id);
        }
    }

    /// What an absent driver would supply under this name.
    fn supply(&mut self, name: &str, parent: Option<ObjectId>) -> ObjectId {
        let id = self.objects.len();
        self.objects.push(Loaded {
            path: PathBuf::from(name),
            real: PathBuf::from(name),
            via: Via::Driver,
            parent,
            image: None,
            names: vec![name.to_owned()],
            needs: Vec::new(),
        });
        self.by_name.insert(name.to_owned(), id);
        id
    }

    fn map(&mut self, path: &Path, via: Via, parent: Option<ObjectId>) -> Found {
        let known = self.seen.borrow().located.get(path).cloned();
        let real = match known {
            Some(None) => return Found::Missing(Vec::new()),
            Some(Some(real)) => real,
            None => match self.root.resolve(path) {
                Ok(real) => {
                    self.seen
                        .borrow_mut()
                        .located
                        .insert(path.to_owned(), Some(real.clone()));
                    real
                }
                Err(error) if absent_to_the_loader(&error) => {
                    self.seen.borrow_mut().located.insert(path.to_owned(), None);
                    return Found::Missing(Vec::new());
                }
                Err(error) => return Found::Unknown(error.to_string()),
            },
        };
        if let Some(id) = self.by_file.get(&real) {
            return Found::Object(*id);
        }
        let image = match self.image(&real) {
            Ok(image) => image,
            Err(Refused::Unknown(why)) => return Found::Unknown(why),
            // A file of another class is passed over; one that is no ELF at all ends the search.
            Err(Refused::Elf(ElfError::Foreign(_))) => return Found::Missing(vec![real]),
            Err(Refused::Elf(error)) => return Found::Unreadable(real, error.to_string()),
            Err(Refused::Absent) => return Found::Missing(Vec::new()),
        };
        if image.header.machine != self.search.machine {
            return Found::Missing(vec![real]);
        }
        let id = self.objects.len();
        let mut names = vec![path.display().to_string()];
        if let Some(soname) = &image.soname {
            names.push(soname.clone());
        }
        for name in &names {
            self.by_name.entry(name.clone()).or_insert(id);
        }
        self.by_file.insert(real.clone(), id);
        self.objects.push(Loaded {
            path: path.to_owned(),
            real,
            via,
            parent,
            image: Some(image),
            names,
            needs: Vec::new(),
        });
        Found::Object(id)
    }

    fn image(&self, real: &Path) -> Result<Rc<Image>, Refused> {
        if let Some(known) = self.seen.borrow().images.get(real) {
            return known.clone().map_err(Refused::Elf);
        }
        let file = match self.root.open(real) {
            Ok(file) => file,
            Err(error) if absent_to_the_loader(&error) => return Err(Refused::Absent),
            Err(RootError::NotAFile { .. }) => return Err(Refused::Elf(ElfError::NotElf)),
            Err(error) => return Err(Refused::Unknown(error.to_string())),
        };
        let image = Image::read(file).map(Rc::new);
        self.seen
            .borrow_mut()
            .images
            .insert(real.to_owned(), image.clone());
        image.map_err(Refused::Elf)
    }

    /// Checks versions and symbols of what was just mapped, against the scope that it got.
    fn judge(&mut self, list: &[ObjectId], before: usize, opened: &mut Opened) {
        let new: Vec<ObjectId> = list.iter().copied().filter(|id| *id >= before).collect();
        for id in &new {
            self.check_versions(*id, opened);
        }
        let mut scope = self.global.clone();
        scope.extend(list.iter().copied().filter(|id| !self.global.contains(id)));
        for id in new {
            self.check_symbols(id, &scope, opened);
        }
    }

    fn check_versions(&self, id: ObjectId, opened: &mut Opened) {
        let Some(image) = self.objects.get(id).and_then(|o| o.image.clone()) else {
            return;
        };
        for need in image.version_needs() {
            let Some(library) = self.by_name.get(&need.file).and_then(|i| self.objects.get(*i)) else {
                continue;
            };
            let Some(target) = library.image.as_ref().filter(|i| i.has_versions()) else {
                continue;
            };
            for version in &need.versions {
                if !version.weak && !target.defines_version(&version.name) {
                    opened.faults.push(Fault::Version {
                        version: version.name.clone(),
                        library: library.path.clone(),
                        needed_by: self.path_of(id),
                    });
                }
            }
        }
    }

    fn check_symbols(&self, id: ObjectId, scope: &[ObjectId], opened: &mut Opened) {
        let Some(image) = self.objects.get(id).and_then(|o| o.image.clone()) else {
            return;
        };
        let real = self.objects.get(id).map(|o| o.real.clone()).unwrap_or_default();
        let known = self.seen.borrow().undefined.get(&real).cloned();
        let undefined = known.unwrap_or_else(|| {
            let found = Rc::new(image.undefined());
            self.seen.borrow_mut().undefined.insert(real, Rc::clone(&found));
            found
        });
        let mut relocated = None;
        let driver_here = scope
            .iter()
            .any(|i| self.objects.get(*i).is_some_and(|o| o.via == Via::Driver));
        for undefined in undefined.iter() {
            if undefined.weak {
                continue;
            }
            let asked = Asked::new(undefined);
            let defined = (image.symbolic && image.defines(&asked))
                || scope.iter().any(|i| {
                    let object = self.objects.get(*i).and_then(|o| o.image.as_ref());
                    object.is_some_and(|o| o.defines(&asked))
                });
            if defined || (driver_here && is_driver_symbol(&undefined.name)) {
                continue;
            }
            let named = relocated.get_or_insert_with(|| image.relocated());
            if !named.contains(&undefined.number) {
                continue;
            }
            opened.faults.push(Fault::Undefined {
                symbol: undefined.name.clone(),
                version: undefined.version.as_ref().map(|(_, version, _)| version.clone()),
                needed_by: self.path_of(id),
            });
        }
    }

    /// All objects, in the order in which they were mapped.
    pub fn objects(&self) -> &[Loaded] {
        &self.objects
    }

    /// Whether a library of this name, or of this name and any suffix, is loaded.
    pub fn has(&self, prefix: &str) -> bool {
        self.objects
            .iter()
            .any(|o| o.image.is_some() && file_name(&o.path).starts_with(prefix))
    }

    /// The file system that it lives in.
    pub fn root(&self) -> &Root {
        &self.root
    }
}

enum Refused {
    Absent,
    Elf(ElfError),
    Unknown(String),
}

/// The loader passes over what is not there and what it may not open; we may not open it either, but whether
/// the server's user may is not known unless it is plainly absent.
fn absent_to_the_loader(error: &RootError) -> bool {
    error.is_absent() || matches!(error, RootError::Loop { .. })
}

/// Names of the CUDA driver's, NVML's and OpenGL-free driver libraries' functions.
fn is_driver_symbol(name: &str) -> bool {
    let driver = |prefix: &str| {
        name.strip_prefix(prefix)
            .and_then(|rest| rest.chars().next())
            .is_some_and(|c| c.is_ascii_uppercase())
    };
    driver("cu") || driver("nvml") || driver("cuda") && name.starts_with("cudaGL")
}
