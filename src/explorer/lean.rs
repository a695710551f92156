//! Scripts and styles as they are sent: without comments, indentation and the blanks that only people need. Names and lines
//! stay, so that a browser's messages can be read.

/// A style sheet without indentation and blanks. It must hold no comment, and no text with a mark that is followed by a blank.
pub(super) fn style(source: &str) -> String {
    let lean: String = source.lines().map(str::trim).collect();
    [(" {", "{"), ("{ ", "{"), ("; ", ";"), (";}", "}"), (" }", "}"), (": ", ":"), (", ", ",")]
        .iter()
        .fold(lean, |style, (long, short)| style.replace(long, short))
}

/// A script without comments, indentation and blanks. Strings, regular expressions and the text of templates stay, but for the
/// indentation of a template's lines. A slash after `)` is a division.
pub(super) fn script(source: &str) -> String {
    let mut lean = Lean { rest: source, sent: String::with_capacity(source.len()), gap: Gap::None };
    // The open braces: whether a template goes on behind each.
    let mut braces = Vec::new();
    while let Some(next) = lean.rest.chars().next() {
        match next {
            '\n' => lean.skip(1, Gap::Line),
            _ if next.is_whitespace() => lean.skip(next.len_utf8(), Gap::Blank),
            '/' if lean.rest.starts_with("//") => lean.skip(lean.rest.find('\n').unwrap_or(lean.rest.len()), Gap::Blank),
            '/' if lean.rest.starts_with("/*") => {
                lean.skip(lean.rest.find("*/").map_or(lean.rest.len(), |end| end + 2), Gap::Blank);
            }
            '/' if lean.expects_value() => lean.regular_expression(),
            '\'' | '"' => lean.string(next),
            '`' => {
                lean.send(1);
                lean.template(&mut braces);
            }
            '{' => {
                braces.push(false);
                lean.send(1);
            }
            '}' => {
                lean.send(1);
                if braces.pop() == Some(true) {
                    lean.template(&mut braces);
                }
            }
            _ => lean.send(next.len_utf8()),
        }
    }
    lean.sent
}

/// What the source has between two tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Blank,
    Line,
}

struct Lean<'a> {
    rest: &'a str,
    sent: String,
    gap: Gap,
}

impl Lean<'_> {
    fn skip(&mut self, bytes: usize, gap: Gap) {
        self.rest = &self.rest[bytes..];
        self.gap = self.gap.max(gap);
    }

    /// Sends the next bytes, after the gap if it matters.
    fn send(&mut self, bytes: usize) {
        let (token, rest) = self.rest.split_at(bytes);
        let is_word = |mark: char| mark.is_alphanumeric() || mark == '_' || mark == '$';
        if let (Some(last), Some(next)) = (self.sent.chars().next_back(), token.chars().next()) {
            match self.gap {
                Gap::Line if !"{([,;".contains(last) && !"})].".contains(next) => self.sent.push('\n'),
                // `a + +b` and `a / /b/` keep theirs.
                Gap::Blank if is_word(last) && is_word(next) || last == next && "+-/".contains(next) => self.sent.push(' '),
                _ => {}
            }
        }
        self.sent.push_str(token);
        (self.rest, self.gap) = (rest, Gap::None);
    }

    /// Whether a value begins here, so that a slash begins a regular expression.
    fn expects_value(&self) -> bool {
        let sent = self.sent.as_str();
        sent.is_empty() || sent.ends_with(|last: char| "(,=:[!&|?{};>".contains(last)) || sent.ends_with("return")
    }

    fn string(&mut self, quote: char) {
        let mut is_escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, mark)| {
            let ends = *mark == quote && !is_escaped;
            is_escaped = *mark == '\\' && !is_escaped;
            ends
        });
        self.send(end.map_or(self.rest.len(), |(at, _)| at + 1));
    }

    fn regular_expression(&mut self) {
        let (mut is_escaped, mut in_class) = (false, false);
        let end = self.rest.char_indices().skip(1).find(|(_, mark)| {
            let ends = *mark == '/' && !is_escaped && !in_class;
            in_class = !is_escaped && *mark == '[' || in_class && (is_escaped || *mark != ']');
            is_escaped = *mark == '\\' && !is_escaped;
            ends
        });
        self.send(end.map_or(self.rest.len(), |(at, _)| at + 1));
    }

    /// Sends the text of a template, to its end or to the next `${`.
    fn template(&mut self, braces: &mut Vec<bool>) {
        let (mut is_escaped, mut at_line) = (false, false);
        while let Some(mark) = self.rest.chars().next() {
            if !is_escaped && self.rest.starts_with("${") {
                braces.push(true);
                self.sent.push_str("${");
                self.rest = &self.rest[2..];
                return;
            }
            let ends = mark == '`' && !is_escaped;
            is_escaped = mark == '\\' && !is_escaped;
            if !(at_line && mark == '\t') {
                self.sent.push(mark);
                at_line = mark == '\n';
            }
            self.rest = &self.rest[mark.len_utf8()..];
            if ends {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_sent_without_what_only_people_need() {
        let cases = [
            // source, sent
            ("// a\n\nlet a = '// b'; // c\n", "let a='// b';"),
            ("/** a */\n\tlet a = 1 /* b */;\nlet b;\n", "let a=1;let b;"),
            ("a\nb()\n\t.c()\n;[d]", "a\nb().c()\n;[d]"),
            ("if (a) {\n\treturn b;\n}\nelse c\n", "if(a){return b;}\nelse c"),
            ("a + +b - -c + d / /e/.f", "a+ +b- -c+d/ /e/.f"),
            ("x = y / z; w = a.b(/[/'\\]]/g, ' , ')", "x=y/z;w=a.b(/[/'\\]]/g,' , ')"),
            ("return /'/.test(a)", "return/'/.test(a)"),
            ("a => /`/ .b", "a=>/`/.b"),
            ("'it\\'s  ' + \"  \\\\\" + b", "'it\\'s  '+\"  \\\\\"+b"),
            ("h`<p>  a,  b\n\t\t${ c ? h`<i> ${ {d: '}'}.d } </i>` : '' }  e \\` f</p>` ;  g",
                "h`<p>  a,  b\n${c?h`<i> ${{d:'}'}.d} </i>`:''}  e \\` f</p>`;g"),
            ("import {a, b} from './c.js';\nexport const d = async () => await a;\n", "import{a,b}from'./c.js';export const d=async()=>await a;"),
            ("for (const a of [1]) b = ü in c", "for(const a of[1])b=ü in c"),
        ];
        for (source, sent) in cases {
            assert_eq!(script(source), sent, "{source}");
        }
    }

    #[test]
    fn styles_are_sent_without_what_only_people_need() {
        let sheet = "a, b {\n\tcolor: red;\n}\n@media (x: 1rem) {\n\ta::after { content: \" ↑\"; }\n}\n";
        assert_eq!(style(sheet), "a,b{color:red}@media (x:1rem){a::after{content:\" ↑\"}}");
    }
}
