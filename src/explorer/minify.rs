//! Removes comments and unnecessary white space from scripts.

/// After these characters a slash begins a regular expression, not a division.
const BEFORE_EXPRESSION: &str = "(,=:[!&|?{};+-*%<>~^";
const WORDS_BEFORE_EXPRESSION: [&str; 5] = ["return", "case", "typeof", "of", "in"];

/// Removes comments and unnecessary white space. Keeps line breaks that may end a statement. In template literals it
/// removes indentation after line breaks, since the page's templates are markup.
pub fn minify(script: &str) -> String {
    let mut scanner = Scanner { rest: script, out: String::with_capacity(script.len()) };
    scanner.code();
    scanner.out.push('\n');
    scanner.out
}

struct Scanner<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Scanner<'a> {
    /// Copies code up to its end, or up to the brace that ends an expression in a template.
    fn code(&mut self) {
        let mut depth = 0;
        loop {
            let skipped = self.skip_blank();
            let Some(next) = self.rest.chars().next() else { return };
            self.separate(skipped, next);
            match next {
                '\'' | '"' => self.text(next),
                '`' => self.template(),
                '/' if self.expects_expression() => self.regular_expression(),
                '}' if depth == 0 => return,
                _ => {
                    depth += usize::from(next == '{');
                    depth -= usize::from(next == '}');
                    self.copy(next.len_utf8());
                }
            }
        }
    }

    /// Skips white space and comments. Returns the skipped text.
    fn skip_blank(&mut self) -> &'a str {
        let before = self.rest;
        loop {
            self.rest = self.rest.trim_start();
            let end = if self.rest.starts_with("//") {
                self.rest.find('\n')
            } else if self.rest.starts_with("/*") {
                self.rest.find("*/").map(|at| at + 2)
            } else {
                return &before[..before.len() - self.rest.len()];
            };
            self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
        }
    }

    /// Writes the line break or blank that must stay of a skipped text before a character.
    fn separate(&mut self, skipped: &str, next: char) {
        let Some(last) = self.out.chars().next_back().filter(|_| !skipped.is_empty()) else { return };
        if skipped.contains('\n') {
            if !"{([,;".contains(last) && !"})].".contains(next) {
                self.out.push('\n');
            }
        } else if (is_word(last) && is_word(next)) || (last == next && "+-/".contains(next)) {
            self.out.push(' ');
        }
    }

    /// Whether an expression must follow, not an operator.
    fn expects_expression(&self) -> bool {
        let before = self.out.trim_end();
        let word = before.rsplit(|letter| !is_word(letter)).next().unwrap_or_default();
        match before.chars().next_back() {
            None => true,
            Some(last) => BEFORE_EXPRESSION.contains(last) || WORDS_BEFORE_EXPRESSION.contains(&word),
        }
    }

    /// Copies a string with its quotes.
    fn text(&mut self, quote: char) {
        self.copy(1);
        self.copy_until(|letter| letter == quote);
        self.copy(1);
    }

    /// Copies a regular expression without its flags.
    fn regular_expression(&mut self) {
        self.copy(1);
        let mut in_class = false;
        self.copy_until(|letter| {
            in_class = (in_class || letter == '[') && letter != ']';
            letter == '/' && !in_class
        });
        self.copy(1);
    }

    /// Copies a template literal with its backquotes.
    fn template(&mut self) {
        self.copy(1);
        loop {
            match self.rest.chars().next() {
                Some('`') | None => return self.copy(1),
                Some('$') if self.rest.starts_with("${") => {
                    self.copy(2);
                    self.code();
                    self.copy(1);
                }
                Some('\n') => {
                    self.copy(1);
                    self.rest = self.rest.trim_start();
                }
                Some(letter) => self.letter(letter),
            }
        }
    }

    /// Copies up to a character that is not escaped.
    fn copy_until(&mut self, mut is_end: impl FnMut(char) -> bool) {
        while let Some(letter) = self.rest.chars().next().filter(|letter| !is_end(*letter)) {
            self.letter(letter);
        }
    }

    /// Copies the next character. After a backslash, also copies the escaped character.
    fn letter(&mut self, letter: char) {
        self.copy(letter.len_utf8());
        if letter == '\\' {
            self.copy(self.rest.chars().next().map_or(0, char::len_utf8));
        }
    }

    fn copy(&mut self, bytes: usize) {
        let (copied, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.out.push_str(copied);
        self.rest = rest;
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnecessary_white_space_is_removed() {
        let cases = [
            ("const a = 1, b = {c: [2, 3]};", "const a=1,b={c:[2,3]};"),
            ("import {a} from './b.js';\nexport const c = a;", "import{a}from'./b.js';export const c=a;"),
            ("// one\n/** two */\n\tlet a; // three\n/* four\n */ let b;", "let a;let b;"),
            ("if (a) {\n\treturn 'x  y';\n}\nelse b();", "if(a){return'x  y';}\nelse b();"),
            ("a = b + +c - -d + ++e;", "a=b+ +c- -d+ ++e;"),
            ("a\nb", "a\nb"),
            ("a(\n\tb,\n\tc\n)\n.d()", "a(b,c).d()"),
            ("x = a / b / c; y = a.b / 2;", "x=a/b/c;y=a.b/2;"),
            ("x = y.replace(/[/'\" ]\\/ a/g, ' ')", "x=y.replace(/[/'\" ]\\/ a/g,' ')"),
            ("return / a/.test(b)", "return/ a/.test(b)"),
            ("x = (a) / 2; // it's\ny = 'it\\'s // no comment';", "x=(a)/2;y='it\\'s // no comment';"),
            ("x = `a  ${b + `c  ${ {d: 1} }`} // e\n\t\tf`;", "x=`a  ${b+`c  ${{d:1}}`} // e\nf`;"),
            ("x = `\\` ${a}`; y = 1;", "x=`\\` ${a}`;y=1;"),
            ("get size() { return a ?? b; }", "get size(){return a??b;}"),
            ("const größe = 1;", "const größe=1;"),
        ];
        for (script, expected) in cases {
            assert_eq!(minify(script), format!("{expected}\n"), "{script}");
            assert_eq!(minify(&minify(script)), minify(script), "twice: {script}");
        }
    }

    #[test]
    fn unfinished_scripts_end() {
        for script in ["'a", "`a", "`a ${b", "/* a", "x = /a", "x = '\\", "{", "", "x = /[/", "`\\ß", "'\\ß"] {
            assert!(minify(script).len() <= script.len() + 1, "{script}");
        }
    }
}
