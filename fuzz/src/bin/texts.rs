//! Imports of text files. The first byte of the input selects the format: CSV, JSON lines or a JSON list.
#![no_main]

use libfuzzer_sys::fuzz_target;
use medfeed_fuzz::imports::Importer;
use medfeed_fuzz::seeds;

const ENDINGS: [&str; 3] = ["csv", "jsonl", "json"];

thread_local! {
    static IMPORTER: Importer = Importer::new();
}

fuzz_target!(
    init: seeds::write_and_exit(|| [seeds_of_csv(), seeds_of_jsonl()].concat()),
    |input: &[u8]| {
        let Some((ending, input)) = input.split_first() else { return };
        IMPORTER.with(|importer| importer.import(input, ENDINGS[usize::from(*ending) % ENDINGS.len()]));
    }
);

/// Tables as exports and spreadsheet programs write them.
fn seeds_of_csv() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 12] = [
        b"\0\0id,name,year,start_date,start_date_status,abstract_due_date_status,late_breaking_due_date_status,\
          therapy_areas,country,city,formats_oral,tags,organizations\n\
          1,ASCO,2026,2026-05-29,confirmed,check,check,Oncology; Hematology,Spain,Madrid,TRUE,topic-area: Breast,\n\
          50,\"a \"\"quoted\"\", name\nof two lines\",2026,,check,not_found,check,,,,x,,European Society for Medical Oncology\n",
        b"\0\x01id,name,abbv,issn_print,issn_online,publisher,url,impact_factor,h_index,publishing_access,\
          publishing_content_license,publishing_apc_usd,publishing_embargo_months,organizations,tags\n\
          1,3 Biotech,3B,2190-572X,2190-5738,Springer,https://example.org/1,2.5,7,hybrid,CC BY,100,12,,\n",
        b"\0\x02id,name,abbv,type,url\n1,A,ACC,society,https://www.example.org\n91,'=x,,,\n",
        b"\0\x03id,type,name,category\n1,topic-area,Breast,\n70,a,b,c\n",
        b"\x10\0ID;Name;Year;Start Date;Start-Date Status;Abstract due date status;late breaking due date status\n\
          7;semicolons;2026;15.03.2026;Confirmed;CHECK;Not found\n",
        b"\x28\x01id\tname\timpact factor\tapc usd\n1\tx\t3.000\t$1,200.50\n",
        b"\x40\0List of congresses\n\n,id,start_date,year,,\n,1,3/4/2026,2026,,\n,3,\"March 15, 2026\",20 26,,\n",
        b"\0\0id,deleted\n1,TRUE\n3,no\n5,\n",
        b"\x04\0name,year,city\nASCO Annual Meeting 2026,2026,Madrid\n",
        b"\x82\x01id,name,remark\n1,,a\n1,twice,b\nx,-,c\n",
        b"\x01\x01\xff\xfei\0d\0,\0n\0a\0m\0e\0\n\x001\0,\0\x41\x26\n\0",
        b"\0\x01\xef\xbb\xbfid|name\r\n2|K\xfcche\r\n3|\x93x\x94\r\n",
    ];
    seeds.map(|seed| [&[0], seed].concat()).to_vec()
}

/// The fixtures, a few rows each.
fn seeds_of_jsonl() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (kind, name) in ["conferences", "journals", "organizations", "tags"].into_iter().enumerate() {
        let text = seeds::fixture(&format!("{name}.jsonl"));
        let lines: Vec<&str> = text.lines().collect();
        for some in lines.chunks(3) {
            for (ending, text) in [(1, some.join("\n")), (2, format!("[{}]", some.join(",\n")))] {
                seeds.push([&[ending, 0, u8::try_from(kind).expect("a kind")], text.as_bytes()].concat());
            }
        }
    }
    let others: [&[u8]; 6] = [
        b"\0\0{\"id\":2,\"deleted\":true}\n\n{\"id\":3,\"deleted\":false,\"city\":null}\n",
        b"\x04\0{\"name\":\"New\",\"year\":2027,\"start_date_status\":\"check\",\"abstract_due_date_status\":\"check\",\
          \"late_breaking_due_date_status\":\"check\"}\n",
        b"\0\x01{\"id\":1,\"organizations\":[{\"id\":90,\"name\":\"A\"},2],\"tags\":[\"topic-area: Breast\"]}\n",
        b"\x02\x01\xef\xbb\xbf{\"ID\":1,\"unknown\":{\"a\":[1,2.50e3,\"\\ud83d\\ude00\"]}}\r\n",
        b"\x01\x02\xff\xfe{\0\"\0i\0d\0\"\0:\x001\0}\0",
        b"\x80\x03{\"id\":1,\"type\":\"a\",\"name\":\"b\",\"category\":\"c\"}\nnull\n[]\n",
    ];
    seeds.extend(others.map(|seed| [&[1], seed].concat()));
    seeds
}
