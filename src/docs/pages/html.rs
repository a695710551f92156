//! Escaping, templates and the frame of every page.

const STYLE: &str = include_str!("style.css");

/// Escapes text for HTML elements and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(character),
        }
    }
    html
}

/// Escapes text, and converts backticks into `<code>`.
pub fn inline(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(at, piece)| {
        let piece = escape(piece);
        // Every second piece was between two backticks.
        if at % 2 == 1 { format!("<code>{piece}</code>") } else { piece }
    });
    pieces.collect()
}

/// Replaces every `{{name}}` in a template by its HTML. Values are inserted as they are. A name without a value
/// remains, and a test finds it.
pub fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut html = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        html.push_str(before);
        let found = after
            .split_once("}}")
            .and_then(|(name, tail)| values.iter().find(|(known, _)| *known == name).map(|(_, value)| (value, tail)));
        match found {
            Some((value, tail)) => {
                html.push_str(value);
                rest = tail;
            }
            None => {
                html.push_str("{{");
                rest = after;
            }
        }
    }
    html.push_str(rest);
    html
}

/// Builds a page around a body. `root` is the relative address of `/`. Links are relative, so they work behind any
/// prefix.
pub fn frame(title: &str, root: &str, body: &str) -> String {
    let (title, root) = (escape(title), escape(root));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"{root}favicon.svg\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<script src=\"{root}docs/page.js\" defer></script>\n</head>\n<body>\n\
         <header><a class=\"home\" href=\"{root}\">medfeed</a> <a href=\"{root}docs\">Guide and reference</a> \
         <a href=\"{root}docs/errors\">Errors</a> <a href=\"{root}openapi.json\">OpenAPI</a></header>\n\
         {body}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(inline("send `<key>` & wait"), "send <code>&lt;key&gt;</code> &amp; wait");
    }

    #[test]
    fn templates_are_filled_once() {
        let values = [("a", "{{b}}".to_owned()), ("b", "B".to_owned())];
        assert_eq!(fill("{{a}} {{b}} {{c}} {{", &values), "{{b}} B {{c}} {{");
    }
}
