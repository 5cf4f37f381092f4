//! Wheel tags and the file names of extension modules against the interpreter and the C library that are there.

use super::Environment;

/// What an environment can take.
#[derive(Debug, Clone)]
pub struct Interpreter {
    /// Minor version of Python 3.
    pub minor: u32,
    /// For example `x86_64`.
    pub machine: String,
    /// The C library's version, where known.
    pub glibc: Option<(u32, u32)>,
}

/// Why a wheel's tags do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagFault {
    /// Built for other versions of Python.
    Python(String),
    /// Built for another machine.
    Machine(String),
    /// Needs a newer C library: what is needed.
    Glibc((u32, u32)),
}

impl Interpreter {
    /// What `environment` can take on this machine with this C library.
    pub fn of(environment: &Environment, machine: &str, glibc: Option<(u32, u32)>) -> Self {
        Self {
            minor: environment.minor,
            machine: machine.to_owned(),
            glibc,
        }
    }
}

fn python_fits(python: &str, abi: &str, minor: u32) -> bool {
    python.split('.').any(|tag| {
        if tag == "py3" || tag == "py2" {
            return tag == "py3";
        }
        if let Some(n) = tag.strip_prefix("py3").and_then(|n| n.parse::<u32>().ok()) {
            return n <= minor;
        }
        let Some(n) = tag.strip_prefix("cp3").and_then(|n| n.parse::<u32>().ok()) else {
            return false;
        };
        abi.split('.').any(|abi| match abi {
            "abi3" => n <= minor,
            "none" => n == minor,
            abi => n == minor && abi.trim_end_matches(['m', 'u', 'd']) == format!("cp3{n}"),
        })
    })
}

fn platform_fits(platform: &str, interpreter: &Interpreter) -> Result<(), TagFault> {
    let mut fault = None;
    for tag in platform.split('.') {
        if tag == "any" {
            return Ok(());
        }
        if !tag.ends_with(&interpreter.machine) {
            fault.get_or_insert_with(|| TagFault::Machine(tag.to_owned()));
            continue;
        }
        let needs = match tag.strip_prefix("manylinux") {
            Some(rest) if rest.starts_with("1_") => Some((2, 5)),
            Some(rest) if rest.starts_with("2010_") => Some((2, 12)),
            Some(rest) if rest.starts_with("2014_") => Some((2, 17)),
            Some(rest) => {
                let mut parts = rest.trim_start_matches('_').splitn(3, '_');
                match (
                    parts.next().and_then(|p| p.parse().ok()),
                    parts.next().and_then(|p| p.parse().ok()),
                ) {
                    (Some(major), Some(minor)) => Some((major, minor)),
                    _ => None,
                }
            }
            None => None,
        };
        match (needs, interpreter.glibc) {
            (Some(needs), Some(have)) if needs > have => {
                fault = Some(TagFault::Glibc(needs));
            }
            _ => return Ok(()),
        }
    }
    fault.map_or(Ok(()), Err)
}

/// Whether any of a wheel's tags fits; the first reason if none does.
pub fn check_tags(tags: &[String], interpreter: &Interpreter) -> Result<(), TagFault> {
    let mut first = None;
    for tag in tags {
        let mut parts = tag.splitn(3, '-');
        let (Some(python), Some(abi), Some(platform)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let verdict = if python_fits(python, abi, interpreter.minor) {
            platform_fits(platform, interpreter)
        } else {
            Err(TagFault::Python(format!("{python}-{abi}")))
        };
        match verdict {
            Ok(()) => return Ok(()),
            Err(fault) => {
                // A glibc that is too old tells more than another tag's other Python.
                let better =
                    matches!(fault, TagFault::Glibc(_)) && !matches!(first, Some(TagFault::Glibc(_)));
                if first.is_none() || better {
                    first = Some(fault);
                }
            }
        }
    }
    first.map_or(Ok(()), Err)
}

/// The version of Python that an extension module's file name binds it to: 11 for `x.cpython-311-….so`; `None` for
/// `abi3` and plain names.
pub fn extension_tag(file_name: &str) -> Option<u32> {
    let (_, rest) = file_name.split_once(".cpython-3")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_real_wheels() {
        let here = Interpreter {
            minor: 11,
            machine: "x86_64".into(),
            glibc: Some((2, 36)),
        };
        let check = |tag: &str| check_tags(&[tag.to_owned()], &here);
        for tag in [
            "py3-none-any",
            "py2.py3-none-any",
            "cp311-cp311-manylinux_2_28_x86_64",
            "cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64",
            "cp310-abi3-manylinux2014_x86_64",
            "py3-none-manylinux1_x86_64",
            "py3-none-linux_x86_64",
            "cp311-none-any",
        ] {
            assert_eq!(check(tag), Ok(()), "{tag}");
        }
        assert_eq!(
            check("cp312-cp312-manylinux_2_28_x86_64"),
            Err(TagFault::Python("cp312-cp312".into()))
        );
        assert_eq!(
            check("cp312-abi3-linux_x86_64"),
            Err(TagFault::Python("cp312-abi3".into()))
        );
        assert_eq!(
            check("cp311-cp311t-linux_x86_64"),
            Err(TagFault::Python("cp311-cp311t".into()))
        );
        assert_eq!(
            check("py3-none-manylinux_2_39_x86_64"),
            Err(TagFault::Glibc((2, 39)))
        );
        assert_eq!(
            check("py3-none-manylinux2014_aarch64"),
            Err(TagFault::Machine("manylinux2014_aarch64".into()))
        );
        let either = ["cp310-cp310-linux_x86_64", "cp311-cp311-linux_x86_64"].map(String::from);
        assert_eq!(check_tags(&either, &here), Ok(()));
    }

    #[test]
    fn extension_names() {
        assert_eq!(extension_tag("_C.cpython-311-x86_64-linux-gnu.so"), Some(11));
        assert_eq!(extension_tag("common_ops.abi3.so"), None);
        assert_eq!(extension_tag("libx.so"), None);
    }
}
