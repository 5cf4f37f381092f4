//! A unified diff of two texts, for files of a few thousand lines (Myers' algorithm, bounded).

/// Edits beyond which two files are called different without saying how.
const MAX_EDITS: usize = 2000;
/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Bytes of diff text that are kept.
const MAX_TEXT: usize = 64 << 10;

/// How two texts differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextDiff {
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// The hunks, in unified form, cut at a bound.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep(usize),
    Remove(usize),
    Add(usize),
}

#[expect(clippy::many_single_char_names, reason = "the names of Myers' paper")]
/// The shortest edit from `a` to `b`, or `None` where it is longer than the bound.
fn edits(a: &[&str], b: &[&str]) -> Option<Vec<Edit>> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a_rest, b_rest) = (&a[head..], &b[head..]);
    let tail = a_rest
        .iter()
        .rev()
        .zip(b_rest.iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let (a_mid, b_mid) = (&a_rest[..a_rest.len() - tail], &b_rest[..b_rest.len() - tail]);
    let (n, m) = (a_mid.len() as isize, b_mid.len() as isize);
    let bound = (a_mid.len() + b_mid.len()).min(MAX_EDITS);
    let offset = bound as isize + 1;
    let mut furthest = vec![0_isize; 2 * bound + 3];
    let mut history = Vec::new();
    let mut reached = None;
    'search: for d in 0..=bound as isize {
        history.push(furthest.clone());
        for k in (-d..=d).step_by(2) {
            let at = (k + offset) as usize;
            let mut x = if k == -d || (k != d && furthest[at - 1] < furthest[at + 1]) {
                furthest[at + 1]
            } else {
                furthest[at - 1] + 1
            };
            while x < n && x - k < m && a_mid[x as usize] == b_mid[(x - k) as usize] {
                x += 1;
            }
            furthest[at] = x;
            if x >= n && x - k >= m {
                reached = Some(d);
                break 'search;
            }
        }
    }
    let mut middle = Vec::new();
    let (mut x, mut y) = (n, m);
    for d in (0..=reached?).rev() {
        let row = history.get(d as usize)?;
        let k = x - y;
        let at = (k + offset) as usize;
        let down = k == -d || (k != d && row[at - 1] < row[at + 1]);
        let from = if down { k + 1 } else { k - 1 };
        let from_x = if d == 0 { 0 } else { row[(from + offset) as usize] };
        let from_y = if d == 0 { 0 } else { from_x - from };
        while x > from_x && y > from_y {
            x -= 1;
            y -= 1;
            middle.push(Edit::Keep(head + x as usize));
        }
        if d > 0 {
            if down {
                y -= 1;
                middle.push(Edit::Add(head + y as usize));
            } else {
                x -= 1;
                middle.push(Edit::Remove(head + x as usize));
            }
        }
    }
    let mut all: Vec<Edit> = (0..head).map(Edit::Keep).collect();
    all.extend(middle.into_iter().rev());
    all.extend((a.len() - tail..a.len()).map(Edit::Keep));
    Some(all)
}

/// The unified diff from `before` to `after`; `None` where they differ too much or are not text.
pub fn unified(before: &[u8], after: &[u8], name: &str) -> Option<TextDiff> {
    let (before, after) = (
        std::str::from_utf8(before).ok()?,
        std::str::from_utf8(after).ok()?,
    );
    if before.contains('\0') || after.contains('\0') {
        return None;
    }
    let a: Vec<&str> = before.split_inclusive('\n').collect();
    let b: Vec<&str> = after.split_inclusive('\n').collect();
    let edits = edits(&a, &b)?;
    let mut diff = TextDiff::default();
    for edit in &edits {
        match edit {
            Edit::Add(_) => diff.added += 1,
            Edit::Remove(_) => diff.removed += 1,
            Edit::Keep(_) => {}
        }
    }
    if diff.added + diff.removed == 0 {
        return Some(diff);
    }
    diff.text = format!("--- a/{name}\n+++ b/{name}\n");
    let changed: Vec<usize> = (0..edits.len())
        .filter(|i| !matches!(edits[*i], Edit::Keep(_)))
        .collect();
    let mut at = 0;
    while let Some(first) = changed.get(at) {
        let start = first.saturating_sub(CONTEXT);
        let mut last = *first;
        while let Some(next) = changed.get(at).filter(|n| **n <= last + 2 * CONTEXT + 1) {
            last = *next;
            at += 1;
        }
        let end = (last + CONTEXT + 1).min(edits.len());
        write_hunk(&mut diff.text, &edits[..start], &edits[start..end], &a, &b);
        if diff.text.len() > MAX_TEXT {
            let cut = diff.text.floor_char_boundary(MAX_TEXT);
            diff.text.truncate(cut);
            diff.text.push_str("\n… cut\n");
            break;
        }
    }
    Some(diff)
}

fn write_hunk(out: &mut String, earlier: &[Edit], hunk: &[Edit], a: &[&str], b: &[&str]) {
    let olds = |edits: &[Edit]| edits.iter().filter(|e| !matches!(e, Edit::Add(_))).count();
    let news = |edits: &[Edit]| edits.iter().filter(|e| !matches!(e, Edit::Remove(_))).count();
    let range = |start: usize, count: usize| match count {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        _ => format!("{},{count}", start + 1),
    };
    let header = format!(
        "@@ -{} +{} @@\n",
        range(olds(earlier), olds(hunk)),
        range(news(earlier), news(hunk))
    );
    out.push_str(&header);
    for edit in hunk {
        let (sign, line) = match edit {
            Edit::Keep(i) => (' ', a[*i]),
            Edit::Remove(i) => ('-', a[*i]),
            Edit::Add(i) => ('+', b[*i]),
        };
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies a diff's lines to `before`: what must come out is `after`.
    fn apply(before: &str, diff: &str) -> String {
        let old: Vec<&str> = before.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        for line in diff.split_inclusive('\n') {
            if line.starts_with("---") || line.starts_with("+++") && out.is_empty() && at == 0 {
                continue;
            }
            if let Some(rest) = line.strip_prefix("@@ -") {
                let numbers = rest.split(' ').next().unwrap();
                let mut parts = numbers.split(',');
                let start: usize = parts.next().unwrap().parse().unwrap();
                let empty = parts.next() == Some("0");
                let start = if empty { start } else { start - 1 };
                while at < start {
                    out.push_str(old[at]);
                    at += 1;
                }
                continue;
            }
            match line.chars().next() {
                Some(' ') => {
                    out.push_str(old[at]);
                    at += 1;
                }
                Some('-') => at += 1,
                Some('+') => out.push_str(&line[1..]),
                _ => {
                    out.pop();
                }
            }
        }
        while at < old.len() {
            out.push_str(old[at]);
            at += 1;
        }
        out
    }

    #[test]
    fn known_diff() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nX\nY\ne\nf\ng\nh\n";
        let diff = unified(before.as_bytes(), after.as_bytes(), "f").unwrap();
        assert_eq!(
            diff.text,
            "--- a/f\n+++ b/f\n@@ -1,7 +1,8 @@\n a\n b\n c\n-d\n+X\n+Y\n e\n f\n g\n"
        );
        assert_eq!((diff.added, diff.removed), (2, 1));
        assert!(unified(b"\0", b"a", "f").is_none());
    }

    proptest::proptest! {
        #[test]
        fn a_diff_leads_from_one_to_the_other(a in "([ab]\n){0,30}", b in "([abc]\n){0,30}") {
            let diff = unified(a.as_bytes(), b.as_bytes(), "f").unwrap();
            if a == b {
                proptest::prop_assert_eq!(diff.text, "");
            } else {
                proptest::prop_assert_eq!(apply(&a, &diff.text), b);
            }
        }
    }
}
