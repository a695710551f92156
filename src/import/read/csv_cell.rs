//! Cells of CSV that other programs wrote: a formula becomes what it shows, and a table in Markdown loses its bars.

use super::table_cell::TableCell;
use crate::model::fold::is_blank;

/// Returns true for the line below the header of a table in Markdown, such as `|:---|---:|`.
pub(super) fn is_ruler(cells: &[TableCell<'_>]) -> bool {
    let is_rule = |text: &str| text.contains("--") && text.trim_matches([':', '-']).is_empty();
    cells.len() > 2
        && cells
            .iter()
            .all(|cell| cell.is_blank() || is_rule(cell.text.trim()))
}

/// Removes the blanks of a row in Markdown, which begins and ends with a bar.
pub(super) fn strip_bars(cells: &mut [TableCell<'_>]) {
    let ([first, .., last], true) = (&*cells, cells.len() > 2) else {
        return;
    };
    if !first.text.is_empty() || !last.is_blank() {
        return;
    }
    for cell in cells {
        let text = cell.text.trim_matches(is_blank);
        let link = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(')'));
        let parts = link.and_then(|text| text.split_once("]("));
        let label = parts.map_or(text, |(label, _)| label).to_owned();
        cell.link = parts.map(|(_, link)| link.to_owned());
        cell.text = label.into();
    }
}

/// Replaces a formula by what it shows: `="0028-4793"`, or a link.
pub(super) fn show_formula(cell: &mut TableCell<'_>) {
    let Some(formula) = cell.text.strip_prefix('=') else {
        return;
    };
    let parts: Vec<&str> = formula.split('"').collect();
    let is_link = |name: &str| name.trim().eq_ignore_ascii_case("HYPERLINK(");
    let (text, link) = match *parts {
        ["", text, ""] => (text, None),
        [name, link, ")"] if is_link(name) => (link, Some(link)),
        [name, link, "," | ";" | ", " | "; ", text, ")"] if is_link(name) => (text, Some(link)),
        _ => return,
    };
    cell.link = link.map(str::to_owned);
    cell.text = text.to_owned().into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lose_what_is_around_their_values() {
        let cases = [
            ("=\"0028-4793\"", "0028-4793", ""),
            (
                "=HYPERLINK(\"https://a.example\",\"Heart A\")",
                "Heart A",
                "https://a.example",
            ),
            (
                "=hyperlink(\"https://a.example\"; \"Heart A\")",
                "Heart A",
                "https://a.example",
            ),
            (
                "=HYPERLINK(\"https://a.example\")",
                "https://a.example",
                "https://a.example",
            ),
            (
                "=HYPERLINK(A1,\"Heart A\")",
                "=HYPERLINK(A1,\"Heart A\")",
                "",
            ),
            ("=A1&\"x\"", "=A1&\"x\"", ""),
            ("| Heart A |", "Heart A", ""),
            (
                "| [Heart A](https://a.example) |",
                "Heart A",
                "https://a.example",
            ),
            ("| [1] Heart (A) |", "[1] Heart (A)", ""),
            ("Heart | A |", "Heart ", ""),
        ];
        for (text, expected, link) in cases {
            let cells = text.split('|').map(TableCell::text);
            let mut cells: Vec<TableCell<'_>> = cells.collect();
            strip_bars(&mut cells);
            cells.iter_mut().for_each(show_formula);
            let shown = cells.iter().find(|cell| !cell.is_blank()).unwrap();
            let found = (&*shown.text, shown.link.as_deref().unwrap_or_default());
            assert_eq!(found, (expected, link), "{text}");
        }
    }

    #[test]
    fn rulers_are_known() {
        for (line, expected) in [
            ("|---|:---:|", true),
            ("| :--- | --: |", true),
            ("| - | - |", false),
            ("|---| A |", false),
        ] {
            let cells = line.split('|').map(TableCell::text);
            assert_eq!(is_ruler(&cells.collect::<Vec<_>>()), expected, "{line}");
        }
    }
}
