//! Minifies scripts: removes comments, indentation and needless whitespace.

/// After these characters, a slash begins a regular expression, not a division.
const BEFORE_EXPRESSION: &str = "(,=:[!&|?{};+-*%<>~^";
/// After these words too.
const WORDS_BEFORE_EXPRESSION: [&str; 5] = ["return", "case", "typeof", "of", "in"];

/// Returns a script without comments and needless whitespace. Keeps a line break that may end a statement. Removes the
/// indentation within templates: they contain HTML.
pub fn lean(script: &str) -> String {
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
    /// Copies code up to its end, or up to the brace that ends a template's expression.
    fn code(&mut self) {
        let mut depth = 0;
        loop {
            let blank = self.skip_blank();
            let Some(next) = self.rest.chars().next() else { return };
            self.separate(blank, next);
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

    /// Skips whitespace and comments. Returns them.
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

    /// Writes the part of the whitespace that must stay before `next`.
    fn separate(&mut self, blank: &str, next: char) {
        let Some(last) = self.out.chars().next_back().filter(|_| !blank.is_empty()) else { return };
        if blank.contains('\n') {
            if !"{([,;".contains(last) && !"})].".contains(next) {
                self.out.push('\n');
            }
        } else if (is_word(last) && is_word(next)) || (last == next && "+-/".contains(next)) {
            self.out.push(' ');
        }
    }

    /// Whether an expression comes next, rather than an operator.
    fn expects_expression(&self) -> bool {
        let before = self.out.trim_end();
        let word = before.rsplit(|letter| !is_word(letter)).next().unwrap_or_default();
        match before.chars().next_back() {
            None => true,
            Some(last) => BEFORE_EXPRESSION.contains(last) || WORDS_BEFORE_EXPRESSION.contains(&word),
        }
    }

    /// Copies a text with its quotes.
    fn text(&mut self, quote: char) {
        self.copy(1);
        self.copy_until(|letter| letter == quote);
        self.copy(1);
    }

    /// Copies a regular expression; its flags are code.
    fn regular_expression(&mut self) {
        self.copy(1);
        let mut in_class = false;
        self.copy_until(|letter| {
            in_class = (in_class || letter == '[') && letter != ']';
            letter == '/' && !in_class
        });
        self.copy(1);
    }

    /// Copies a template with its backquotes.
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

    /// Copies up to a character, which no backslash escapes.
    fn copy_until(&mut self, mut is_end: impl FnMut(char) -> bool) {
        while let Some(letter) = self.rest.chars().next().filter(|letter| !is_end(*letter)) {
            self.letter(letter);
        }
    }

    /// Copies the next character, after a backslash with the one that it escapes.
    fn letter(&mut self, letter: char) {
        self.copy(letter.len_utf8());
        if letter == '\\' {
            self.copy(self.rest.chars().next().map_or(0, char::len_utf8));
        }
    }

    /// Copies bytes.
    fn copy(&mut self, bytes: usize) {
        let (copied, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.out.push_str(copied);
        self.rest = rest;
    }
}

/// Whether a character is part of a name or number.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_go_where_nothing_needs_them() {
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
            assert_eq!(lean(script), format!("{expected}\n"), "{script}");
            assert_eq!(lean(&lean(script)), lean(script), "twice: {script}");
        }
    }

    #[test]
    fn unfinished_scripts_end() {
        for script in ["'a", "`a", "`a ${b", "/* a", "x = /a", "x = '\\", "{", "", "x = /[/", "`\\ß", "'\\ß"] {
            assert!(lean(script).len() <= script.len() + 1, "{script}");
        }
    }
}
