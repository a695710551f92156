//! Cells that several fields share, such as `Rome, Italy` or `12-15 March 2026`, and what a cell of a list of others may
//! be beside the value of a field.

use jiff::civil::Date;

use super::cells::normalize_issn;
use super::dates::{date_range, single_day};
use super::loose::{
    country_of_end, is_mark, is_zero, issns, open_date, without_mode, without_time,
};
use super::options::ReadOptions;
use super::table_cell::{TableCell, web_address};
use super::table_row::{RowReader, is_issn};
use crate::model::Fields;
use crate::model::country::is_country;
use crate::model::fold::is_blank;
use crate::model::message::{Message, message};
use crate::model::value::ValueKind;

impl<F: Fields> RowReader<'_, '_, F> {
    /// Reads a text and its link. Without a link, an address in the text is one.
    pub(super) fn read_linked(&mut self, index: usize, url: usize, cell: &TableCell) {
        let link = cell.link.as_deref().map(|link| link.trim_matches(is_blank));
        match link.and_then(web_address) {
            None if cell.text.contains("://") => self.read_parts(&[index, url], &cell.text),
            address => {
                self.read_text(index, &cell.text);
                if let (Some(link), None) = (link, &address) {
                    let message =
                        message!("links to `{link}`, which is not a web address, and is left out");
                    self.warn(url, &cell.text, message);
                }
                let link = link.filter(|_| address.is_some());
                self.read_text(url, link.unwrap_or_default());
            }
        }
    }

    /// Reads a text that several fields share.
    pub(super) fn read_parts(&mut self, fields: &[usize], text: &str) {
        let table = &F::table().fields;
        let column = &table[fields[0]].column;
        let text = self.meaning_of(column, text).unwrap_or_default();
        let texts = if table[fields[0]].kind == ValueKind::Date {
            self.date_parts(fields, text)
        } else if fields.len() == 2 && table[fields[1]].column == "country" {
            Ok(self.place_parts(fields[0], text))
        } else {
            let listed = self.listed(text).map(|items| items.join(", "));
            let parts = listed.as_deref().unwrap_or(text);
            match is_issn(column) {
                true => self.issn_parts(fields, parts),
                false => split_texts(parts, fields.len()),
            }
        };
        match texts {
            Ok(mut texts) => {
                texts.resize(fields.len(), String::new());
                for (index, text) in fields.iter().zip(texts) {
                    self.read_text(*index, &text);
                }
            }
            Err(message) => self.faults.push_value(column, text, message),
        }
    }

    /// Returns the texts of a range of dates, and of its year.
    fn date_parts(&mut self, fields: &[usize], text: &str) -> Result<Vec<String>, Message> {
        let (range, year) = self.read_dates(fields[0], text)?;
        let (start, end) = range.unzip();
        let has_end = F::table().fields[fields[1]].kind == ValueKind::Date;
        if start != end && !has_end {
            return Err(
                "is a range of dates; map the column to `start_date` and `end_date`".into(),
            );
        }
        let mut texts = vec![text_of(start), text_of(year)];
        if has_end {
            texts.insert(1, text_of(end));
        }
        Ok(texts)
    }

    /// Returns the range of dates in a text, and its year. In a list of others, a time of day is left out, and a date
    /// may not be fixed.
    fn read_dates(&mut self, index: usize, text: &str) -> Result<DatesAndYear, Message> {
        let order = self.notation.dates;
        let range = match date_range(text, order) {
            Err(fault) if self.notation.is_loose => {
                if let Some(open) = open_date(text) {
                    self.warn(index, text, "is no date yet, so it counts as empty");
                    return Ok((None, open.year));
                }
                let date = without_time(text).ok_or(fault)?;
                let range = date_range(&date, order)?;
                self.warn(index, text, "has a time of day, which is left out");
                range
            }
            range => range?,
        };
        Ok((range, range.map(|(start, _)| start.year())))
    }

    /// Returns the city and the country of a place.
    fn place_parts(&mut self, city: usize, text: &str) -> Vec<String> {
        let place = without_mode(text);
        if place != text.trim_matches(is_blank) {
            let message = "says how the meeting takes place, which is left out";
            self.warn(city, text, message);
        }
        let (parts, is_clear) = split_place(place, self.options);
        if !is_clear {
            let message = "ends with no known country, or with a word that may be one, so it is all read as the city; write its \
                           country at the end, or under [values.country] of a recipe";
            self.warn(city, text, message);
        }
        parts.into()
    }

    /// Returns the ISSNs of a text. Only the first ones have a field.
    fn issn_parts(&mut self, fields: &[usize], text: &str) -> Result<Vec<String>, Message> {
        let max = fields.len();
        match issns(text) {
            Some(issns) if self.notation.is_loose && issns.len() > max => {
                let count = issns.len();
                let message = message!("has {count} ISSNs; only the first {max} are read");
                self.warn(fields[0], text, message);
                Ok(issns)
            }
            _ => split_texts(text, max),
        }
    }

    /// Returns a date of a list of others, which may not be fixed, or have a time of day.
    pub(super) fn read_date(&mut self, index: usize, text: &str) -> Result<String, Message> {
        let (range, year) = self.read_dates(index, text)?;
        if range.is_none() && F::table().fields[index].column == "start_date" {
            self.open_year = year;
        }
        single_day(range)
    }

    /// Returns the usual form of an ISSN, and empty for one that is none.
    pub(super) fn normalize_issn(&mut self, index: usize, text: &str) -> Option<String> {
        let is_loose = self.notation.is_loose;
        let mut visible = text.to_owned();
        visible.retain(|sign| !is_loose || !is_mark(sign));
        let column = &F::table().fields[index].column;
        if let Some((issn, lacks_zero)) = normalize_issn(column, &visible) {
            if lacks_zero {
                let message = message!(
                    "lacks zeros at its beginning; it is stored as `{issn}`, whose check digit fits"
                );
                self.warn(index, text, message);
            }
            return Some(issn);
        }
        if is_loose && is_zero(&visible) {
            self.warn(index, text, "is no ISSN, so it counts as empty");
            return Some(String::new());
        }
        let issns = issns(text).filter(|_| is_loose)?;
        if issns.len() > 1 {
            let message = message!("has {} ISSNs; only the first is read", issns.len());
            self.warn(index, text, message);
        }
        issns.into_iter().next()
    }
}

fn text_of(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A range of dates, and the year, which may be known without a date.
type DatesAndYear = (Option<(Date, Date)>, Option<i16>);

/// The signs that separate the texts in a cell. The first that a cell contains is the one. `N/A` may be one of them.
const SEPARATORS: [&str; 5] = [";", "\n", ",", " / ", "/"];

/// The signs before the country in a place.
pub(super) const BEFORE_COUNTRY: [&str; 6] = [",", ";", "/", " - ", " – ", "("];

/// Splits a text into at most so many texts.
fn split_texts(text: &str, max: usize) -> Result<Vec<String>, Message> {
    let text = text.trim();
    let mut parts = split_at_signs(text);
    // An empty part keeps its position, unless there are too many.
    if parts.len() > max {
        parts.retain(|part| !part.is_empty());
    }
    if parts.len() > max {
        return Err(message!(
            "has {} parts for {max} fields; correct the cell",
            parts.len()
        ));
    }
    Ok(parts.into_iter().map(str::to_owned).collect())
}

/// Splits a text at the first of the separators that it contains.
pub(in crate::import) fn split_at_signs(text: &str) -> Vec<&str> {
    let separator = SEPARATORS
        .into_iter()
        .find(|separator| text.contains(separator))
        .unwrap_or(SEPARATORS[0]);
    text.split(separator)
        .map(|part| part.trim_matches(|sign: char| sign.is_whitespace() || ",;".contains(sign)))
        .collect()
}

/// Splits a place before its country. Without one, it is a city. Returns whether its end is clear.
fn split_place(text: &str, options: &ReadOptions) -> ([String; 2], bool) {
    let place = |city: &str, country: &str| ([city.to_owned(), country.to_owned()], true);
    let pieces = BEFORE_COUNTRY
        .into_iter()
        .filter_map(|sign| text.rsplit_once(sign))
        .map(|(city, country)| (city.trim(), country.trim().trim_end_matches(')')));
    let mut is_open = text.contains(',');
    for (city, end) in pieces {
        let meant = match options.meaning_of("country", end) {
            Some(meant) => meant,
            None if text.contains(',') => return place(city, end),
            None => continue,
        };
        let mut words = options.words_of("country");
        let is_given = words.any(|word| word.is(end)) && is_country(meant);
        match country_of_end(meant) {
            _ if is_given => return place(city, end),
            Some((country, true)) => return place(text, country),
            Some((country, false)) if country != meant => return place(city, country),
            Some(_) => return place(city, end),
            None => is_open |= is_country(meant),
        }
    }
    if is_country(text) {
        return place("", text);
    }
    ([text.to_owned(), String::new()], !is_open)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::import::findings::{FilePosition, Findings};
    use crate::import::read::options::OptionEffects;
    use crate::import::row_faults::{FileLog, RowFaults, UnknownNames};
    use crate::model::{ConferenceFields, JournalFields};

    /// Returns the values that a cell of a list of others gives several fields, and its faults and warnings.
    fn parts_of<F: Fields>(names: &[&str], text: &str) -> String {
        let position = FilePosition::new("f".into(), 1);
        let (mut bad, mut warnings) = (Findings::default(), Findings::default());
        let mut unknown = UnknownNames::default();
        let mut effects = OptionEffects::default();
        let options = ReadOptions {
            has_recipe: true,
            ..ReadOptions::default()
        };
        let mut faults = RowFaults::new(&position, &mut bad).of_file(FileLog {
            unknown: &mut unknown,
            warnings: &mut warnings,
            effects: &mut effects,
        });
        let mut reader = RowReader::<F>::new(&options, options.notation(), &mut faults);
        let index = |name: &&str| {
            F::table()
                .fields
                .iter()
                .position(|field| field.column == *name)
        };
        let fields: Vec<usize> = names.iter().filter_map(index).collect();
        reader.read_cells(&fields, &[&TableCell::text(text)]);
        reader.set_open_year();
        let values = reader.statement.values();
        let values = fields.iter().map(|index| values[*index].to_csv(&()));
        let values: Vec<Cow<'_, str>> = values.collect();
        let messages = bad.kept().iter().chain(warnings.kept());
        let messages = messages.map(|finding| format!(" - {}", finding.message));
        values.join("|") + &messages.collect::<String>()
    }

    #[test]
    fn cells_are_split() {
        const CITY: &str = "ends with no known country, or with a word that may be one";
        const MODE: &str = "says how the meeting takes place";
        const TIME: &str = "has a time of day, which is left out";
        const OPEN: &str = "is no date yet, so it counts as empty";
        let cases = cases![
            "city+country", "Rome, Italy", "Rome|Italy", "";
            "city+country", "Chicago, IL, USA", "Chicago, IL|USA", "";
            "city+country", "Singapore", "|Singapore", "";
            "city+country", "Vienna", "Vienna|", "";
            "city+country", "Chicago, IL", "Chicago, IL|", CITY;
            "city+country", "Atlanta, Georgia", "Atlanta, Georgia|", CITY;
            "city+country", "Rome, Nowhere", "Rome, Nowhere|", CITY;
            "city+country", "San Diego, California", "San Diego, California|United States", "";
            "city+country", "Austin, TX", "Austin, TX|United States", "";
            "city+country", "Toronto, ON", "Toronto, ON|Canada", "";
            "city+country", "Antwerp, BE", "Antwerp|Belgium", "";
            "city+country", "Graz (AUT)", "Graz|Austria", "";
            "city+country", "Glasgow, Scotland", "Glasgow|United Kingdom", "";
            "city+country", "Belfast, Northern Ireland", "Belfast|United Kingdom", "";
            "city+country", "Málaga, Spain (hybrid)", "Málaga|Spain", MODE;
            "city+country", "Toronto, Canada & Virtual", "Toronto|Canada", MODE;
            "city+country", "", "|", "";
            "city+country", "Buenos Aires (Argentina)", "Buenos Aires|Argentina", "";
            "city+country", "Berlin / Germany", "Berlin|Germany", "";
            "city+country", "Berlin - Germany", "Berlin|Germany", "";
            "issn_print+issn_online", "/1533-4406", "|1533-4406", "";
            "issn_print+issn_online", "0028-4793,\n1533-4406", "0028-4793|1533-4406", "";
            "issn_print+issn_online", "0028-4793, 1533-4406", "0028-4793|1533-4406", "";
            "issn_print+issn_online", "0028-4793 / 1533-4406\n", "0028-4793|1533-4406", "";
            "issn_print+issn_online", "0028-4793;", "0028-4793|", "";
            "issn_print+issn_online", "['0028-4793', '1533-4406']", "0028-4793|1533-4406", "";
            "issn_print+issn_online", "1;2;3", "|", "has 3 parts for 2 fields";
            "issn_print+issn_online", "0028-4793, 1533-4406, 0378-5955", "0028-4793|1533-4406",
                "has 3 ISSNs; only the first 2 are read";
            "issn_print", "0028-4793\u{200e}", "0028-4793", "";
            "issn_print", "\u{202a}0028-4793\u{202c}", "0028-4793", "";
            "issn_print", "0000-0000", "", "is no ISSN";
            "issn_print", "['0028-4793']", "0028-4793", "";
            "issn_print", "0028-4793; 1533-4406", "0028-4793", "has 2 ISSNs; only the first is read";
            "therapy_areas", "['Lungs', 'Heart']", "Lungs; Heart", "";
            "therapy_areas", r#"["Lungs"]"#, "Lungs", "";
            "therapy_areas", "Lungs; Heart", "Lungs; Heart", "";
            "start_date+end_date", "12-15 March 2026", "2026-03-12|2026-03-15", "";
            "start_date+end_date+year", "30 Dec 2025 – 2 Jan 2026", "2025-12-30|2026-01-02|2025", "";
            "start_date+end_date+year", "June 2026", "||2026", OPEN;
            "start_date+end_date+year", "TBC", "||", OPEN;
            "start_date+end_date", "12 May 2026 09:00 - 15 May 2026 17:00", "2026-05-12|2026-05-15", TIME;
            "start_date+year", "2026-03-12", "2026-03-12|2026", "";
            "start_date+year", "12-15 March 2026", "|", "is a range of dates";
            "start_date", "Q3 2026", "", OPEN;
            "start_date", "2026-01-15T23:59:00-12:00", "2026-01-15", TIME;
            "abstract_due_date", "2026-01?", "", OPEN;
            "abstract_due_date", "23 Jan 2026, 23:59 (UTC-12)", "2026-01-23", TIME;
            "abstract_due_date", "whenever", "", "write a date as";
            "name+url", "Alpha", "Alpha|", "";
            "name+url", "Alpha, https://alpha.example", "Alpha|https://alpha.example", "";
        ];
        for (names, text, values, message) in cases {
            let names: Vec<&str> = names.split('+').collect();
            let shown = match names[0].starts_with("issn") {
                true => parts_of::<JournalFields>(&names, text),
                false => parts_of::<ConferenceFields>(&names, text),
            };
            let expected = match message {
                "" => values.to_owned(),
                message => format!("{values} - {message}"),
            };
            let is_equal = shown == expected || !message.is_empty() && shown.starts_with(&expected);
            assert!(is_equal, "{text:?}: {shown}, expected {expected}");
        }
    }
}
