//! A command line in one string, split and joined as a shell does.

/// The words of a command line: blanks divide, quotes and backslashes hold together. An open quote ends with the
/// text.
pub fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut begun = false;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                begun = true;
            }
            (None | Some('"'), '\\') => {
                begun = true;
                if let Some(next) = characters.next() {
                    if quote.is_some() && !matches!(next, '"' | '\\' | '$' | '`') {
                        word.push('\\');
                    }
                    word.push(next);
                }
            }
            (Some(open), c) if c == open => quote = None,
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// The words as one line that a shell would split into them again.
pub fn join_words(words: &[String]) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        if !word.is_empty() && word.chars().all(is_plain) {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}

/// A masked word stays as it is, for people read it: `***` is not meant to be run.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '=' | ',' | '+' | '@' | '%' | '*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_a_shell_does() {
        assert_eq!(
            split_words(r#"a  'b c' "d \" e" f\ g '' h"#),
            ["a", "b c", "d \" e", "f g", "", "h"]
        );
        assert_eq!(split_words("  "), Vec::<String>::new());
        assert_eq!(split_words("'open end"), ["open end"]);
        assert_eq!(split_words(r#""a\nb""#), [r"a\nb"]);
        assert_eq!(
            join_words(&["a b".to_owned(), "it's".to_owned(), String::new()]),
            r"'a b' 'it'\''s' ''"
        );
    }

    proptest! {
        #[test]
        fn joined_words_split_again(words in proptest::collection::vec(".{0,12}", 0..6)) {
            prop_assert_eq!(split_words(&join_words(&words)), words);
        }
    }
}
