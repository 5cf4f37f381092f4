//! `sys.path` as the files define it, and the code that runs at every start of the interpreter.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::root::Root;

/// Bytes of a `.pth` file that anything real has fewer of.
const MAX_PTH: u64 = 1 << 20;

/// What kind of code runs at every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    /// `sitecustomize.py`.
    SiteCustomize,
    /// `usercustomize.py`.
    UserCustomize,
    /// A line of a `.pth` file that is executed.
    PthLine,
}

/// Code that runs at every start of the interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// What it is.
    pub kind: HookKind,
    /// The file.
    pub path: PathBuf,
    /// The line of a `.pth` file, from 1.
    pub line: Option<u64>,
    /// The line itself, or the first line of code of the module.
    pub text: String,
}

/// `sys.path`, and what was met while making it.
#[derive(Debug, Clone, Default)]
pub struct SearchPath {
    /// The directories, in order.
    pub entries: Vec<PathBuf>,
    /// Those of them that hold distributions, in order.
    pub sites: Vec<PathBuf>,
    /// Code that runs at every start.
    pub hooks: Vec<Hook>,
    /// Directories that only a `.pth` line brought in.
    pub from_pth: Vec<(PathBuf, PathBuf)>,
    seen: HashSet<PathBuf>,
}

impl SearchPath {
    /// Appends a directory unless it is there already.
    pub(crate) fn push(&mut self, dir: PathBuf) -> bool {
        let new = self.seen.insert(dir.clone());
        if new {
            self.entries.push(dir);
        }
        new
    }

    /// Appends a site directory and what its `.pth` files bring, as `site.addsitedir` does.
    pub(crate) fn push_site(&mut self, root: &Root, dir: &Path) {
        if !root.is_dir(dir) {
            return;
        }
        self.push(dir.to_owned());
        if self.sites.iter().any(|s| s == dir) {
            return;
        }
        self.sites.push(dir.to_owned());
        let Ok(names) = root.list(dir) else {
            return;
        };
        for name in names
            .iter()
            .filter(|n| has_extension(n, ".pth") && !n.starts_with('.'))
        {
            self.read_pth(root, dir, name);
        }
    }

    fn read_pth(&mut self, root: &Root, dir: &Path, name: &str) {
        let file = dir.join(name);
        let Ok(text) = root.read_text(&file, MAX_PTH) else {
            return;
        };
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with("import ") || line.starts_with("import\t") {
                self.hooks.push(Hook {
                    kind: HookKind::PthLine,
                    path: file.clone(),
                    line: Some(number as u64 + 1),
                    text: shorten(line),
                });
                continue;
            }
            let target = lexical(&dir.join(line));
            if root.metadata(&target).is_ok() && self.push(target.clone()) {
                self.from_pth.push((target, file.clone()));
            }
        }
    }

    /// Finds `sitecustomize` and `usercustomize`: the first of each on the path is what runs.
    pub(crate) fn find_customize(&mut self, root: &Root, user_site: bool) {
        for (kind, module) in [
            (HookKind::SiteCustomize, "sitecustomize"),
            (HookKind::UserCustomize, "usercustomize"),
        ] {
            if kind == HookKind::UserCustomize && !user_site {
                continue;
            }
            let found = self.entries.iter().find_map(|dir| {
                [
                    dir.join(format!("{module}.py")),
                    dir.join(module).join("__init__.py"),
                ]
                .into_iter()
                .find(|p| root.is_file(p))
            });
            if let Some(path) = found {
                let text = root.read_text(&path, MAX_PTH).unwrap_or_default();
                self.hooks.push(Hook {
                    kind,
                    text: shorten(first_code(&text)),
                    path,
                    line: None,
                });
            }
        }
    }
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.len() > extension.len() && name.ends_with(extension)
}

/// The first line that is neither empty nor a comment.
fn first_code(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|l| !l.is_empty() && !l.starts_with('#'))
        .unwrap_or_default()
}

fn shorten(line: &str) -> String {
    let line = crate::mask::variable("", line);
    match line.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The path without `.` and `..`, by name alone.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pth_files_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let site = dir.path().join("site");
        for name in ["site", "one", "two"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(
            site.join("b.pth"),
            "# c\n\n../one\n/two\nnowhere\nimport os; os.x()\n",
        )
        .unwrap();
        std::fs::write(site.join("a.pth"), "import sys\n../two\n").unwrap();
        std::fs::write(site.join("sitecustomize.py"), "# hi\nimport torch\n").unwrap();
        let root = Root::new(dir.path());
        let mut path = SearchPath::default();
        path.push_site(&root, Path::new("/site"));
        path.find_customize(&root, false);
        assert_eq!(path.entries, ["/site", "/two", "/one"].map(PathBuf::from));
        let hooks: Vec<_> = path
            .hooks
            .iter()
            .map(|h| (h.kind, h.line, h.text.as_str()))
            .collect();
        assert_eq!(
            hooks,
            [
                (HookKind::PthLine, Some(1), "import sys"),
                (HookKind::PthLine, Some(6), "import os; os.x()"),
                (HookKind::SiteCustomize, None, "import torch"),
            ]
        );
    }
}
