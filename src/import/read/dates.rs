//! Stub until the values branch is merged.
use jiff::civil::Date;

use crate::import::read::cells::DateOrder;
use crate::model::Message;
use crate::model::time::parse_date;

pub(in crate::import) fn date_range(cell: &str, _order: Option<DateOrder>) -> Result<Option<(Date, Date)>, Message> {
    parse_date(cell).map(|date| Some((date, date))).map_err(|_| "is no date".into())
}
