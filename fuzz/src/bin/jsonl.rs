//! Imports of JSON lines and lists.
#![no_main]

use libfuzzer_sys::fuzz_target;
use medfeed_fuzz::imports::Importer;
use medfeed_fuzz::seeds;

thread_local! {
    static IMPORTER: Importer = Importer::new();
}

fuzz_target!(
    init: seeds::write_and_exit(seeds_of_jsonl),
    |input: &[u8]| {
        let ending = if input.get(2) == Some(&b'[') { "json" } else { "jsonl" };
        IMPORTER.with(|importer| importer.import(input, ending))
    }
);

/// The fixtures, a few rows each.
fn seeds_of_jsonl() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (kind, name) in ["conferences", "journals", "organizations", "tags"].into_iter().enumerate() {
        let text = seeds::fixture(&format!("{name}.jsonl"));
        let lines: Vec<&str> = text.lines().collect();
        for some in lines.chunks(3) {
            for text in [some.join("\n"), format!("[{}]", some.join(",\n"))] {
                seeds.push([&[0, u8::try_from(kind).expect("a kind")], text.as_bytes()].concat());
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
    seeds.extend(others.map(<[u8]>::to_vec));
    seeds
}
