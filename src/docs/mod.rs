//! placeholder
#![allow(missing_docs)]
pub struct Page {
    pub content_type: &'static str,
    pub body: Vec<u8>,
}
pub fn find_page(_path: &str, _public_url: &str) -> Option<Page> {
    None
}
