//! What `.gitignore` files leave out of the untracked files.

/// The patterns of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    parts: Vec<String>,
    negated: bool,
    only_directories: bool,
    anchored: bool,
}

impl Patterns {
    pub(crate) fn parse(text: &str) -> Self {
        let rules = text
            .lines()
            .filter_map(|line| {
                let line = line.trim_end();
                if line.is_empty() || line.starts_with('#') {
                    return None;
                }
                let (negated, line) = match line.strip_prefix('!') {
                    Some(rest) => (true, rest),
                    None => (false, line.strip_prefix('\\').unwrap_or(line)),
                };
                let (only_directories, line) = match line.strip_suffix('/') {
                    Some(rest) => (true, rest),
                    None => (false, line),
                };
                let anchored = line.contains('/');
                let parts = line
                    .trim_start_matches('/')
                    .split('/')
                    .map(str::to_owned)
                    .collect();
                Some(Rule {
                    parts,
                    negated,
                    only_directories,
                    anchored,
                })
            })
            .collect();
        Self { rules }
    }

    /// What this file says of `path`, relative to its directory: ignored, not ignored, or nothing.
    pub(crate) fn verdict(&self, path: &str, is_directory: bool) -> Option<bool> {
        let parts: Vec<&str> = path.split('/').collect();
        self.rules
            .iter()
            .rev()
            .find(|rule| {
                if rule.only_directories && !is_directory {
                    return false;
                }
                if rule.anchored {
                    let pattern: Vec<&str> = rule.parts.iter().map(String::as_str).collect();
                    deep(&pattern, &parts)
                } else {
                    rule.parts
                        .first()
                        .is_some_and(|p| parts.last().is_some_and(|name| one(p, name)))
                }
            })
            .map(|rule| !rule.negated)
    }
}

/// Path against pattern, part by part; `**` stands for any number of parts.
fn deep(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            if rest.is_empty() {
                return !path.is_empty();
            }
            (0..=path.len()).any(|skip| deep(rest, &path[skip..]))
        }
        (Some((p, rest)), Some((name, others))) => one(p, name) && deep(rest, others),
        _ => false,
    }
}

/// One name against one pattern with `*`, `?` and `[...]`.
fn one(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        match step(&pattern, p, name[n]) {
            Some(next) => {
                p = next;
                n += 1;
            }
            None if pattern.get(p) == Some(&'*') => {
                back = Some((p, n));
                p += 1;
            }
            None => match back {
                Some((star, from)) => {
                    back = Some((star, from + 1));
                    p = star + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Where the pattern goes on after matching one character, if it does.
fn step(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match pattern.get(at)? {
        '*' => None,
        '?' => Some(at + 1),
        '\\' => (pattern.get(at + 1) == Some(&c)).then_some(at + 2),
        '[' => {
            let close = pattern.get(at + 2..)?.iter().position(|c| *c == ']')? + at + 2;
            let negated = matches!(pattern.get(at + 1), Some('!' | '^'));
            let set = pattern.get(at + 1 + usize::from(negated)..close)?;
            let mut inside = false;
            let mut i = 0;
            while let Some(low) = set.get(i) {
                match (set.get(i + 1), set.get(i + 2)) {
                    (Some('-'), Some(high)) => {
                        inside |= (*low..=*high).contains(&c);
                        i += 3;
                    }
                    _ => {
                        inside |= *low == c;
                        i += 1;
                    }
                }
            }
            (inside != negated).then_some(close + 1)
        }
        own => (*own == c).then_some(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        let p = Patterns::parse("*.py[co]\nbuild/\n/dist\n!keep.pyc\ndocs/**/out\n# c\n**/tmp\na/*.txt\n");
        for (path, directory, expected) in [
            ("x/y.pyc", false, Some(true)),
            ("y.py", false, None),
            ("a/build", true, Some(true)),
            ("build", false, None),
            ("dist", true, Some(true)),
            ("a/dist", true, None),
            ("x/keep.pyc", false, Some(false)),
            ("docs/a/b/out", false, Some(true)),
            ("docs/out", false, Some(true)),
            ("q/tmp", false, Some(true)),
            ("a/x.txt", false, Some(true)),
            ("a/b/x.txt", false, None),
        ] {
            assert_eq!(p.verdict(path, directory), expected, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[a-z*?\\[\\]!/\\\\\n-]{0,40}", path in "[a-z/]{0,20}") {
            let _ = Patterns::parse(&text).verdict(&path, true);
        }
    }
}
