//! Drafted recipes: invented lists in the shapes of public ones are loaded in two commands, or the draft says what it
//! cannot read.

use std::fs;
use std::panic::catch_unwind;

use rust_xlsxwriter::Workbook;
use serde_json::Value;

use super::site::{Done, Site, assert_contains};

/// A list of others: its kind, its content, parts of the draft, and some members of the stored rows, by id.
type Shape = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// Drafts a recipe for a file.
fn draft(site: &Site, kind: &str, name: &str) -> String {
    let drafted = site.run(["template", kind, "--from", name]);
    assert_eq!(drafted.code, Some(0), "{drafted:?}");
    drafted.stdout
}

/// Checks that a drafted recipe has these parts, and writes it to `list.toml`.
fn write_recipe(site: &Site, content: &str, recipe: &str, parts: &[&str]) {
    for part in parts {
        let is_there = recipe.contains(part);
        assert!(is_there, "{part:?} is missing:\n{content}\n{recipe}");
    }
    site.write("list.toml", recipe);
}

/// Imports a new list by the recipe in `list.toml`.
fn import_new(site: &Site, name: &str) -> Done {
    site.run(["import", name, "--recipe", "list.toml", "--create"])
}

/// Drafts a recipe, imports the file by it, and compares the stored rows.
fn check(name: &str, &(kind, content, says, expected): &Shape) {
    let site = Site::new();
    site.write(name, content);
    let recipe = draft(&site, kind, name);
    write_recipe(&site, content, &recipe, says);
    let done = import_new(&site, name);
    assert_eq!(done.code, Some(0), "{content}\n{recipe}\n{done:?}");
    // A second run of the same list changes nothing.
    let again = site.json(["import", name, "--recipe", "list.toml"]);
    let counts = &again["datasets"][kind];
    for change in ["added", "changed"] {
        assert_eq!(counts[change].as_u64().unwrap_or(0), 0, "{again}");
    }
    let stored = stored(&site, kind);
    let told = format!("{content}\n{recipe}\n{done:?}\n{stored:#?}");
    assert_eq!(stored.len(), expected.len(), "{told}");
    for (row, expected) in stored.iter().zip(expected) {
        let expected: Value = serde_json::from_str(expected).unwrap();
        for (member, value) in expected.as_object().unwrap() {
            let found = row.pointer(&format!("/{}", member.replace('.', "/")));
            assert_eq!(found, Some(value), "{member}: {told}");
        }
    }
}

/// Returns the stored rows of a kind.
fn stored(site: &Site, kind: &str) -> Vec<Value> {
    site.json(["export", "out"]);
    let rows = fs::read_to_string(site.path(&format!("out/{kind}.jsonl"))).unwrap();
    fs::remove_dir_all(site.path("out")).unwrap();
    rows.lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

const TABLES: &[Shape] = &cases![
    // A directory of open journals.
    "journals",
        "Journal title,Journal URL,URL in DOAJ,When did the journal start to publish all content using an open license?,\
            Journal ISSN (print version),Journal EISSN (online version),Keywords,Publisher,Country of publisher,Journal license,APC,APC amount\n\
            Heart A,https://a.example.org,https://doaj.example.org/toc/1,2011,0028-4793,1533-4406,\"heart, lung\",House,Italy,CC BY,Yes,1500 USD\n\
            Heart B,https://b.example.org,https://doaj.example.org/toc/2,2012,,1474-547X,,House,Spain,CC BY-NC,No,\n",
        &["\"Journal title\" = \"name\"", "\"APC amount\" = \"publishing_apc_usd\"",
            "\"URL in DOAJ\",    # 2 cells, such as `https://doaj.example.org/toc/1`",
            "\"APC\",    # 2 cells, such as `Yes`; not read as `publishing_apc_usd`"],
        &[r#"{"name":"Heart A","url":"https://a.example.org","issn_print":"0028-4793","issn_online":"1533-4406","publisher":"House","publishing.content_license":"CC BY","publishing.apc_usd":1500.0}"#,
            r#"{"name":"Heart B","issn_print":null,"issn_online":"1474-547X","publishing.apc_usd":null}"#];
    // Keywords are no tags: a tag has a type.
    "conferences", "Event,Start,Tags\nHeart Days,2027-01-15,heart; lung\nLung Days,2027-02-15,lung\n",
        &["\"Tags\",    # 2 cells, such as `heart; lung`; not read as `tags`"],
        &[r#"{"name":"Heart Days","tags":[]}"#, "{}"];
    // Prices in several currencies within the cells: too few are dollars.
    "journals", "Journal title,APC amount\nHeart A,1500 USD\nHeart B,900 EUR\nHeart C,700 GBP\n",
        &["\"APC amount\",    # 3 cells, such as `1500 USD`; not read as `publishing_apc_usd`, since only 1 of 3 cells can be"],
        &[r#"{"name":"Heart A","publishing.apc_usd":null}"#, "{}", "{}"];
    // A ranking with semicolons, decimal commas and two ISSNs in a cell.
    "journals",
        "Rank;Sourceid;Title;Type;Issn;SJR;SJR Best Quartile;H index;Total Docs. (2024);Country;Publisher;Coverage\n\
            1;12;\"Heart A\";journal;\"00284793, 15334406\";22,797;Q1;120;12;United States;House;1950-2025\n\
            2;13;\"Heart B\";journal;1474547X;0,319;Q4;3;4;Japan;House;2001-2025\n\
            3;14;\"Heart C\";journal;-;;Q4;1;4;Japan;House;2003\n",
        &["decimal = \"comma\"", "empty = [\"-\"]", "\"Country\",    # 3 cells",
            "\"Issn\" = [\"issn_print\", \"issn_online\"]"],
        &[r#"{"name":"Heart A","issn_print":"0028-4793","issn_online":"1533-4406","sjr":22.797,"h_index":120,"publisher":"House"}"#,
            r#"{"name":"Heart B","issn_print":"1474-547X","issn_online":null,"sjr":0.319,"h_index":3}"#,
            r#"{"name":"Heart C","issn_print":null,"sjr":null}"#];
    // A citation report: a title above, a footer below, a quoted percent sign, and gaps.
    "journals", "\"Journal Data Filtered By:  Selected JCR Year: 2024\"\n\n\
            Journal name,JCR Abbreviation,Publisher,ISSN,eISSN,Category,Total Citations,2024 JIF,JIF Quartile,2024 JCI,% of Citable OA,5-Year JIF\n\
            \"HEART A\",HEART A,HOUSE,\"0028-4793\",\"1533-4406\",CARDIAC - SCIE,\"1,234\",\"88.5\",Q1,1.2,\"25.18\"%,90.1\n\
            \"HEART B\",HEART B,HOUSE,\"N/A\",\"1474-547X\",CARDIAC - SCIE,12,\"<0.1\",Q4,0.2,\"1.45\"%,\n\n\
            Copyright (c) 2025 Example \nBy exporting the selected data; you agree to the terms \n",
        &["match = [[\"issn\"], [\"name\"]]", "# new = false",
            "# update = [\"abbv\", \"publisher\", \"impact_factor\", \"impact_factor_year\"]",
            "\"2024 JIF\" = \"impact_factor\"", "impact_factor_year = 2024", "\"<0.1\",    # 1 cell"],
        &[r#"{"name":"HEART A","impact_factor":88.5,"impact_factor_year":2024,"issn_print":"0028-4793"}"#,
            r#"{"name":"HEART B","impact_factor":null,"impact_factor_year":null,"issn_print":null,"issn_online":"1474-547X"}"#];
    // Several years of a metric: the latest counts.
    "journals", "Journal,IF 2022,IF 2023,CiteScore 2023\nHeart A,4.1,4.4,7.5\n",
        &["\"IF 2022\",    # 1 cell, such as `4.1`; `impact_factor` is read from `IF 2023`",
            "impact_factor_year = 2023"], &[r#"{"impact_factor":4.4,"impact_factor_year":2023,"citescore":7.5}"#];
    // Factors of a year that the file does not say: the draft asks.
    "journals", "Journal,ISSN,JIF\nHeart A,0028-4793,4.1\n",
        &["\n[set]\n# impact_factor_year =    # write the year of these factors"],
        &[r#"{"name":"Heart A","impact_factor":4.1,"impact_factor_year":null}"#];
    // Exact names, and an ISSN that repeats another column.
    "journals",
        "journal_full_title,issn,issn_print,issn_electronic\nAlpha Journal of Lungs,1533-4406,0028-4793,1533-4406\nBeta Archives,1865-1542,,1865-1542\n",
        &["\"issn\",    # 2 cells, such as `1533-4406`; `issn_print` is read from `issn_print`"],
        &[r#"{"name":"Alpha Journal of Lungs","issn_print":"0028-4793","issn_online":"1533-4406"}"#,
            r#"{"name":"Beta Archives","issn_print":null,"issn_online":"1865-1542"}"#];
    // A price list with a column of currencies.
    "journals",
        "Journal,ISSN,Currency,APC\nAlpha Journal of Lungs,0028-4793,USD,2500\nBeta Archives,1533-4406,EUR,900\n",
        &["[where.publishing_apc_usd]\n\"Currency\" = [\"USD\"]"],
        &[r#"{"publishing.apc_usd":2500.0}"#, r#"{"publishing.apc_usd":null}"#];
    // The same in German, with signs and a price that names nothing.
    "journals", "Zeitschrift;Verlag;Währung;Preis\nHerz A;Haus;$;2500\nHerz B;Haus;€;900\nHerz C;Haus;US$;1000\n",
        &["\"Währung\" = [\"$\", \"US$\"]"],
        &[r#"{"name":"Herz A","publisher":"Haus","publishing.apc_usd":2500.0}"#, r#"{"publishing.apc_usd":null}"#,
            r#"{"publishing.apc_usd":1000.0}"#];
    // No price is in dollars.
    "journals", "Journal,APC,Currency\nHeart A,2500,EUR\nHeart B,900,GBP\n",
        &["\"APC\",    # 2 cells, such as `2500`; no row has US dollars in `Currency`",
            "\"Currency\",    # 2 cells, such as `EUR`"], &[r#"{"publishing.apc_usd":null}"#, "{}"];
    // Two header rows with a group of prices, and a title above.
    "journals",
        "Price list 2026,,,,,\nISSN,Title,Publishing model,List price,,\n,,,USD,EUR,GBP\n0028-4793,Heart A,Hybrid,3000,2600,2300\n\
            1474-547X,Heart B,Open access,3100,2700,2400\n",
        &["header_rows = 2", "\"List price USD\" = \"publishing_apc_usd\"",
            "\"List price EUR\",    # 2 cells, such as `2600`"],
        &[r#"{"name":"Heart A","publishing.access":"hybrid","publishing.apc_usd":3000.0}"#,
            r#"{"publishing.access":"open"}"#];
    // Prices in columns that name their currency.
    "journals",
        "Journal Title,APC (EUR),APC (USD),APC (£)\nHeart A,2000,2500,1800\nHeart B,see website,see website,see website\nHeart C,see website,see website,\n",
        &["\"APC (USD)\" = \"publishing_apc_usd\"", "\"see website\",    # 2 cells",
            "\"APC (EUR)\",    # 3 cells, such as `2000`"],
        &[r#"{"publishing.apc_usd":2500.0}"#, r#"{"publishing.apc_usd":null}"#, "{}"];
    // A header of a price with a foreign sign alone.
    "journals", "Journal,APC (€)\nHeart A,2000\n",
        &["\"APC (€)\",    # 1 cell, such as `2000`; prices in another currency than US dollars"],
        &[r#"{"publishing.apc_usd":null}"#];
    // A national register with codes, Spanish headers and zeros for ISSNs.
    "journals", "Código,Título de la revista,ISSN impreso,ISSN electrónico,Editorial,País,Página web\n\
            R001,Revista Alfa,0028-4793,0000-0000,Casa,España,https://alfa.example.es\nR002,Revista Beta,0000-0000,1533-4406,Casa,España,www.beta.example.es\n",
        &["issn_print = [\n    \"0000-0000\",    # 1 cell", "\"Código\",    # 2 cells, such as `R001`"],
        &[r#"{"name":"Revista Alfa","issn_print":"0028-4793","issn_online":null,"publisher":"Casa","url":"https://alfa.example.es"}"#,
            r#"{"name":"Revista Beta","issn_print":null,"issn_online":"1533-4406"}"#];
    // Polish and French headers.
    "journals", "Lp.;Tytuł czasopisma;ISSN druk;e-ISSN;Wydawca;Punkty\n1;Serce;0028-4793;1533-4406;Dom;140\n",
        &["\"Punkty\",    # 1 cell, such as `140`"],
        &[r#"{"name":"Serce","issn_print":"0028-4793","issn_online":"1533-4406","publisher":"Dom"}"#];
    "journals",
        "Titre de la revue;Éditeur;ISSN papier;ISSN en ligne;Facteur d'impact 2023\nCœur;Maison;0028-4793;1533-4406;3,2\n",
        &["decimal = \"comma\"", "impact_factor_year = 2023"],
        &[r#"{"name":"Cœur","publisher":"Maison","impact_factor":3.2,"impact_factor_year":2023}"#];
    // Ids of another database, and an unnamed column at the right.
    "journals", "ID,Journal,Publisher,\n17,Heart A,House,new\n18,Heart B,House,\n",
        &["\"ID\",    # 2 cells, such as `17`; map it to `id` only if", "\"=D\",    # 1 cell, such as `new`"],
        &[r#"{"id":1,"name":"Heart A"}"#, r#"{"id":2,"name":"Heart B"}"#];
    // The index of a data frame, and a column of booleans.
    "journals", ",title,issn,is_oa\n0,Heart A,0028-4793,True\n1,Heart B,1533-4406,False\n",
        &["\"=A\",    # 2 cells, such as `0`",
            "\"is_oa\",    # 2 cells, such as `True`; not read as `publishing_access`"],
        &[r#"{"name":"Heart A","issn_print":"0028-4793"}"#, r#"{"issn_print":"1533-4406"}"#];
    // Words of access, one of which is unknown.
    "journals", "Journal,OA status\nHeart A,Gold\nHeart B,Hybrid\nHeart C,Bronze\nHeart D,Bronze\nHeart E,Closed\n",
        &["publishing_access = [\n    \"Bronze\",    # 2 cells"],
        &[r#"{"publishing.access":"open"}"#, r#"{"publishing.access":"hybrid"}"#, r#"{"publishing.access":null}"#, "{}",
            r#"{"publishing.access":"subscription"}"#];
    // A table without a header.
    "journals",
        "0028-4793,Alpha Journal of Lungs,https://alpha.example\n1533-4406,Beta Archives,https://beta.example\n1865-1542,Gamma Letters,https://gamma.example\n",
        &["header_rows = 0", "\"=B\" = \"name\""],
        &[r#"{"name":"Alpha Journal of Lungs","issn_print":"0028-4793","url":"https://alpha.example"}"#,
            r#"{"name":"Beta Archives"}"#, r#"{"name":"Gamma Letters","issn_print":"1865-1542"}"#];
    // Exact columns next to columns that say the same in other words.
    "conferences", "title,full_name,year,date,start,end,place,city,country\n\
            ADys,Alpha Days,2026,\"May 3, 2026\",2026-05-03,2026-05-05,\"Graz, Styria\",Graz,Austria\nBDys,Beta Days,2026,\"June 3, 2026\",2026-06-03,2026-06-05,\"Bonn\",Bonn,Germany\n",
        &["\"title\",    # 2 cells, such as `ADys`; `name` is read from `full_name`",
            "\"date\",    # 2 cells, such as `May 3, 2026`; `start_date` is read from `start`"],
        &[r#"{"name":"Alpha Days","year":2026,"start_date":"2026-05-03","end_date":"2026-05-05","city":"Graz","country":"Austria"}"#,
            r#"{"name":"Beta Days","start_date":"2026-06-03","end_date":"2026-06-05","city":"Bonn","country":"Germany"}"#];
    // Deadlines of conferences, as programs write them.
    "conferences",
        "name,cfp_link,submission_due,conf_start,conf_loc\nAlpha Days,https://alpha.example/cfp,2026.01.15,2026.05.03,Graz AT\nBeta Days,https://beta.example,2026.02.15,2026.06.03,Bonn DE\n",
        &["\"cfp_link\" = \"url\""],
        &[r#"{"name":"Alpha Days","abstract_due_date":"2026-01-15","start_date":"2026-05-03","year":2026,"url":"https://alpha.example/cfp"}"#,
            r#"{"name":"Beta Days","abstract_due_date":"2026-02-15"}"#];
    "conferences",
        "name,url,cfpUrl,cfpEndDate,startDate,endDate,city,country,online\nAlpha Days,https://alpha.example,https://alpha.example/cfp,2026-01-15,2026-05-03,2026-05-05,Graz,Austria,false\n",
        &["\"cfpUrl\",    # 1 cell, such as `https://alpha.example/cfp`; `url` is read from `url`",
            "\"cfpEndDate\" = \"abstract_due_date\""],
        &[r#"{"url":"https://alpha.example","abstract_due_date":"2026-01-15","end_date":"2026-05-05"}"#];
    // A society's calendar: ranges, places, the number of each society, and notes.
    "conferences",
        "Meeting;Dates;Place;Website;Society 1;Society 2;Notes\nHeart Days;12–15 March 2026;Rome, Italy;https://a.example.org;S1;S2;x\n\
            Lung Days;30 Sep - 2 Oct 2026;Chicago, IL, USA;;S1;;\nLiver Day;5th March 2026;TBA;;;S2;\n",
        &["match = [[\"name\", \"start_date\"], [\"name\", \"year\"]]", "city = [\n    \"TBA\",    # 1 cell",
            "create_links = true"],
        &[r#"{"name":"Heart Days","start_date":"2026-03-12","end_date":"2026-03-15","year":2026,"city":"Rome","country":"Italy"}"#,
            r#"{"name":"Lung Days","start_date":"2026-09-30","end_date":"2026-10-02","city":"Chicago, IL"}"#,
            r#"{"name":"Liver Day","start_date":"2026-03-05","end_date":"2026-03-05","city":null}"#];
    // German: decimal signs, dates with points, a title above.
    "conferences",
        "Kongresskalender 2026;;;;;\n;;;;;\nVeranstaltung;Beginn;Ende;Ort;Land;Einreichfrist\nHerztage;12.3.2026;15.3.2026;Wien;Österreich;1.12.2025\nLungentage;3.4.2026;4.4.2026;Graz;Österreich;k. A.\n",
        &["\"Einreichfrist\" = \"abstract_due_date\""],
        &[r#"{"name":"Herztage","start_date":"2026-03-12","end_date":"2026-03-15","city":"Wien","abstract_due_date":"2025-12-01"}"#,
            r#"{"name":"Lungentage","abstract_due_date":null}"#];
    // Dates whose order one cell shows, and years of two digits.
    "conferences", "Event,From,To\nHeart Days,03/04/2026,05/04/2026\nLung Days,28/05/2026,30/05/2026\n",
        &["dates = \"dmy\""],
        &[r#"{"start_date":"2026-04-03","end_date":"2026-04-05"}"#, r#"{"start_date":"2026-05-28"}"#];
    "conferences", "Event,From,To\nHeart Days,3/4/26,3/7/26\nLung Days,5/28/26,5/30/26\n", &["dates = \"mdy\""],
        &[r#"{"start_date":"2026-03-04","end_date":"2026-03-07"}"#, r#"{"start_date":"2026-05-28"}"#];
    "conferences", "Event,When\nHeart Days,12-Mar-26\nLung Days,3-Apr-26\n", &["dates = \"dmy\""],
        &[r#"{"start_date":"2026-03-12"}"#, r#"{"start_date":"2026-04-03","year":2026}"#];
    // A group above each column.
    "conferences",
        "Congress,When,,Where,,Deadlines,\n,From,To,City,Country,Abstract,Late-breaking\nHeart Days,2026-03-12,2026-03-15,Rome,Italy,2025-12-01,2026-01-15\n",
        &["header_rows = 2", "\"When From\" = [\"start_date\", \"year\"]"],
        &[r#"{"name":"Heart Days","start_date":"2026-03-12","end_date":"2026-03-15","city":"Rome","country":"Italy","abstract_due_date":"2025-12-01","late_breaking_due_date":"2026-01-15"}"#];
    // Areas in one cell, separated by a comma or a bar.
    "conferences",
        "Conference name,Specialty,Start date\nHeart Days,\"Cardiology, Surgery\",2026-03-12\nLung Days,Surgery,2026-04-12\nBoth Days,\"Surgery, Cardiology\",2026-05-12\n",
        &["list_separator = \",\""],
        &[r#"{"therapy_areas":["Cardiology","Surgery"]}"#, r#"{"therapy_areas":["Surgery"]}"#,
            r#"{"therapy_areas":["Cardiology","Surgery"]}"#];
    "conferences", "Conference name|Topics|Start date\nHeart Days|Cardiology;Surgery|2026-03-12\n",
        &["list_separator = \";\""], &[r#"{"therapy_areas":["Cardiology","Surgery"]}"#];
    // Times of day, and dates that are not fixed.
    "conferences",
        "Meeting;Start;Deadline\nAlpha Days;2026-05-03;2026-01-15 23:59 AoE\nBeta Days;2026-06-03;2026-01-15T23:59:00-12:00\n\
            Gamma Days;2026-07-03;23 Jan 2026, 23:59 (UTC-12)\nDelta Days;June 2026;TBC\n",
        &["\"Deadline\" = \"abstract_due_date\""],
        &[r#"{"abstract_due_date":"2026-01-15"}"#, r#"{"abstract_due_date":"2026-01-15"}"#,
            r#"{"abstract_due_date":"2026-01-23"}"#, r#"{"start_date":null,"year":2026,"abstract_due_date":null}"#];
    // States, and how a meeting takes place.
    "conferences",
        "Meeting;Start;Place\nAlpha Days;2026-05-03;San Diego, California\nBeta Days;2026-07-03;Málaga, Spain (hybrid)\n",
        &["\"Place\" = [\"city\", \"country\"]"],
        &[r#"{"city":"San Diego, California","country":"United States"}"#, r#"{"city":"Málaga","country":"Spain"}"#];
    // A mark of direction behind an ISSN.
    "journals", "Journal,ISSN\nAlpha Journal of Lungs,0028-4793\u{200e}\n", &["\"ISSN\" = \"issn_print\""],
        &[r#"{"issn_print":"0028-4793"}"#];
    // Columns of booleans, and a status.
    "conferences", "Event,Start,Oral,Poster,Encore,Date status\nHeart Days,2026-03-12,yes,no,,confirmed\n",
        &["\"Oral\" = \"formats_oral\""],
        &[r#"{"formats.oral":true,"formats.poster":false,"formats.encore":null,"start_date_status":"confirmed"}"#];
    // A column whose name says one thing, and its cells another.
    "conferences", "Event,Start,Registration opens,Location\nHeart Days,2026-03-12,2025-09-01,https://map.example/1\n",
        &["\"Registration opens\",    # 1 cell, such as `2025-09-01`",
            "\"Location\",    # 1 cell, such as `https://map.example/1`; not read as `city`"],
        &[r#"{"start_date":"2026-03-12","city":null}"#];
    // Two columns of one name, the second with countries; dates with short years, in an order that only their days show.
    "conferences", "Event,Start,Location,Location,Deadline\nHeart Days,5/13/26,Vienna,Austria,Closed\n",
        &["\"Location\" = \"city\"", "\"Location#2\" = \"country\"", "dates = \"mdy\""],
        &[r#"{"start_date":"2026-05-13","city":"Vienna","country":"Austria","abstract_due_date":null}"#];
    // The events of a calendar.
    "conferences", "Subject,Start Date,Start Time,Location\nHeart Days,2026-05-13,09:00 AM,\"Vienna, Austria\"\n",
        &["\"Subject\" = \"name\""], &[r#"{"name":"Heart Days","start_date":"2026-05-13","city":"Vienna"}"#];
    // The results of a query, with addresses of things beside their names.
    "journals", "journal,journalLabel,issn,publisherLabel\nhttp://data.example/Q1,Heart A,0028-4793,Alpha Press\n",
        &["\"journalLabel\" = \"name\"", "\"publisherLabel\" = \"publisher\""],
        &[r#"{"name":"Heart A","publisher":"Alpha Press"}"#];
    // Two columns of ISSNs that only numbers tell apart, without the zeros that a spreadsheet drops.
    "journals", "Title,ISSN1,ISSN2\nHeart A,284793,15334406\nHeart B,1865-1542,\n",
        &["\"ISSN1\" = \"issn_print\"", "\"ISSN2\" = \"issn_online\""],
        &[r#"{"issn_print":"0028-4793","issn_online":"1533-4406"}"#, r#"{"issn_print":"1865-1542","issn_online":null}"#];
    // Prices, some in other currencies, and a footer that has a comma.
    "journals",
        "Journal title,ISSN,Publisher,APC amount,Rank,Area\nHeart A,0028-4793,House,1500 USD,1,x\nHeart B,1865-1542,House,750 EUR,2,x\n\
            Heart C,1533-4406,House,USD 20,3,x\n\nCopyright of House\nBy using this list, you agree\n",
        &["\"APC amount\" = \"publishing_apc_usd\""],
        &[r#"{"publishing.apc_usd":1500.0}"#, r#"{"publishing.apc_usd":null}"#, r#"{"publishing.apc_usd":20.0}"#];
    // Words for a status that is not known, and a place with a slash.
    "conferences",
        "Name of congress,Date(s),Start date status,City /Country\nHeart Days,2026-05-13,Confirmed,Rome / Italy\nLung Days,TBC,TBC,Vienna / Austria\n",
        &["start_date_status = \"check\"", "\"City /Country\" = [\"city\", \"country\"]"],
        &[r#"{"name":"Heart Days","start_date":"2026-05-13","start_date_status":"confirmed","city":"Rome","country":"Italy"}"#,
            r#"{"start_date":null,"start_date_status":"check","city":"Vienna"}"#];
    // Dates in Japanese, and months without a day.
    "conferences", "大会名,会期,開催地\n第50回心臓学会,2026年12月5日(土)～8日,東京\n第51回心臓学会,2027年1月30日〜2月1日,京都\n",
        &["\"会期\" = [\"start_date\", \"end_date\", \"year\"]"],
        &[r#"{"name":"第50回心臓学会","start_date":"2026-12-05","end_date":"2026-12-08"}"#,
            r#"{"start_date":"2027-01-30","end_date":"2027-02-01","year":2027}"#];
    "conferences", "Annual meeting,Month\nHeart Days,2026-03\n", &["\"Month\" = [\"start_date\", \"year\"]"],
        &[r#"{"name":"Heart Days","start_date":null,"year":2026}"#];
    // Cells with formulas.
    "journals", "Journal,ISSN\n\"=HYPERLINK(\"\"https://a.example\"\",\"\"Heart A\"\")\",\"=\"\"0028-4793\"\"\"\n",
        &["\"Journal\" = [\"name\", \"url\"]"],
        &[r#"{"name":"Heart A","url":"https://a.example","issn_print":"0028-4793"}"#];
    // Prices with groups of thousands alone, and sections.
    "journals",
        "Title,ISSN,APC USD\nJournals of Alpha Press,,\nHeart A,0028-4793,\"$3,000\"\nJournals of Beta Press,,\nHeart B,1533-4406,950\n",
        &["decimal = \"point\""],
        &[r#"{"name":"Heart A","publishing.apc_usd":3000.0}"#, r#"{"name":"Heart B","publishing.apc_usd":950.0}"#];
    // A ranking without a header: only the names are different texts of several words.
    "conferences", "1,Heart Days,HD,CORE 2026,A\n2,Lung Days,LD,CORE 2026,B\n3,Skin Days,SD,CORE 2026,B\n",
        &["header_rows = 0", "\"=B\" = \"name\""], &[r#"{"name":"Heart Days"}"#, "{}", r#"{"name":"Skin Days"}"#];
    // Names in Japanese.
    "organizations",
        "学会ID,正式名称,略称,法人格,会員数,ウェブサイト\nSOC001,一般社団法人心臓学会,心臓学会,一般社団法人,122057,https://www.naika.example.jp/\n",
        &["\"学会ID\",    # 1 cell, such as `SOC001`"],
        &[r#"{"name":"一般社団法人心臓学会","abbv":"心臓学会","type":"一般社団法人","url":"https://www.naika.example.jp/"}"#];
];

/// Lists that no recipe can read as they are: the kind, the content, and the parts of the draft that say so.
#[rustfmt::skip]
const LOUD: &[(&str, &str, &[&str])] = &cases![
    // A table of an encyclopedia, whose rows have no name.
    "conferences", "Edition,Date,Location,Venue\n12th,\"July 5–9, 2026\",\"Vienna, Austria\",Messe\n",
        &["# No column is read as `name`, so no row can be new", "list.csv:2: name: is required",
            "\"Edition\",    # 1 cell, such as `12th`; not read as `year`"];
    // A table of texts without known names: the first row may be a record.
    "journals", "Alpha Journal of Lungs,Alpha J Lungs\nBeta Archives,Beta Arch\nGamma Letters,Gamma Lett\n",
        &["# No column is read as `name`", "header_rows = 0    # the first row looks like those below",
            "\"=A\",    # 3 cells, such as `Alpha Journal of Lungs`"];
    // A row without a name is no header, and a row of its own.
    "conferences",
        "Event;Start;City\n;2026-01-15;Graz\nHeart Days;2026-02-15;Wien\nLung Days;2026-03-15;Linz\n",
        &["would refuse the import:\n#   list.csv:2: name: is required", "\"Start\" = [\"start_date\", \"year\"]",
            "\"City\" = \"city\""];
    // Numbers and dates with two meanings.
    "journals", "Journal,SJR\nHeart A,\"1,234\"\nHeart B,\"2,345\"\n",
        &["# decimal =     # write \"comma\" or \"point\": 2 cells, such as `1,234`, may mean both", "may be 1234 or 1.234"];
    "conferences", "Event,Start\nHeart Days,3/4/2026\nLung Days,5/6/2026\n",
        &["# dates =     # write \"dmy\" or \"mdy\": 2 cells, such as `3/4/2026`, may mean both"];
    // Faults below the rows from which the draft is made are counted, too.
    "journals", "Journal,ISSN\nHeart A,0028-4793\n,1533-4406\n",
        &["The whole file has 2 rows. Filled: name 1, issn_print 2.", "list.csv:3: name: is required"];
];

#[test]
fn drafts_say_what_they_cannot_read() {
    for (kind, content, says) in LOUD {
        let site = Site::new();
        site.write("list.csv", content);
        let recipe = draft(&site, kind, "list.csv");
        write_recipe(&site, content, &recipe, says);
        let done = import_new(&site, "list.csv");
        assert_eq!(done.code, Some(1), "{content}\n{recipe}\n{done:?}");
    }
}

#[test]
fn of_several_sheets_the_one_with_most_columns_is_drafted() {
    let site = Site::new();
    let mut workbook = Workbook::new();
    let mut add = |name: &str, rows: &[[&str; 3]]| {
        let sheet = workbook.add_worksheet().set_name(name).unwrap();
        for (row, cells) in (0..).zip(rows) {
            for (column, text) in (0..).zip(*cells) {
                sheet.write(row, column, text).unwrap();
            }
        }
    };
    add("Read me", &[["Our list", "", ""]]);
    let header = ["Conference", "City", "Start"];
    add("2025", &[header, ["Alpha Days", "Wien", "2025-05-03"]]);
    add("2026", &[header, ["Beta Days", "Graz", "2026-05-03"]]);
    workbook.save(site.path("list.xlsx")).unwrap();
    let recipe = draft(&site, "conferences", "list.xlsx");
    let line = "sheet = \"2025\"    # a list of names reads several; others: \"Read me\", \"2026\"";
    assert!(recipe.contains(line), "{recipe}");
    for (sheets, count) in [("\"2025\"", 1), ("[\"2025\", \"2026\"]", 2)] {
        let recipe = recipe.replace(line, &format!("sheet = {sheets}"));
        site.write("list.toml", recipe);
        let done = import_new(&site, "list.xlsx");
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(stored(&site, "conferences").len(), count, "{done:?}");
    }
}

/// Lists of objects.
const OBJECTS: &[Shape] = &cases![
    // The members of an object.
    "journals", r#"{"a1":{"title":"Heart A","publisher":"House"},"b2":{"title":"Heart B"}}"#, &["\"title\" = \"name\""],
        &[r#"{"name":"Heart A","publisher":"House"}"#, r#"{"name":"Heart B"}"#];
    // Lists with one object, at two depths.
    "conferences",
        r#"[{"title":"Heart Days","confs":[{"year":2026,"place":"Rome, Italy","date":"May 3-5, 2026","timeline":[{"deadline":"2026-01-15 23:59:59"}]}]}]"#,
        &["\"confs.timeline.deadline\" = \"abstract_due_date\""],
        &[r#"{"name":"Heart Days","year":2026,"city":"Rome","start_date":"2026-05-03","end_date":"2026-05-05","abstract_due_date":"2026-01-15"}"#];
    // Lists with several are no values, and say so.
    "conferences",
        r#"[{"title":"Heart Days","confs":[{"year":2026,"link":"https://a.example"},{"year":2027,"link":"https://b.example"}]}]"#,
        &["\"confs.year\",    # 1 cell, such as `2026; 2027`; not read as `year`"],
        &[r#"{"name":"Heart Days","year":null,"url":null}"#];
    // A web site: titles as it shows them, and the address of the venue.
    "conferences",
        r#"{"data":{"events":[{"id":3,"title":{"rendered":"Heart Days"},"venue":{"url":"https://hall.example","country":{"name":"Italy"}}}]}}"#,
        &["\"venue.url\",    # 1 cell"], &[r#"{"name":"Heart Days","country":"Italy","url":null}"#];
    // The day of a post is not that of its event.
    "conferences",
        r#"[{"date":"2025-05-05T10:00:00","title":{"rendered":"Heart Days"},"acf":{"start_date":"20260105","end_date":"20260108"}}]"#,
        &["\"date\",    # 1 cell"],
        &[r#"{"name":"Heart Days","start_date":"2026-01-05","end_date":"2026-01-08","year":2026}"#];
    // Prices in a list, next to the one in dollars.
    "journals",
        r#"[{"display_name":"Heart A","apc_prices":[{"price":1500,"currency":"GBP"},{"price":2000,"currency":"EUR"}],"apc_usd":1900}]"#,
        &["\"apc_usd\" = \"publishing_apc_usd\""], &[r#"{"publishing.apc_usd":1900.0}"#];
];

#[test]
fn objects_are_drafted_by_their_paths() {
    let site = Site::new();
    let rows = r#"[{"title":"Alpha Days","when":{"start":"2026-05-03","end":"2026-05-05"},"id":7},
        {"title":"Beta Days","when":{"start":"2026-06-03"},"venue":{"city":"Graz"},"areas":["Cardiology","Surgery"]}]"#;
    site.write("list.json", rows);
    let recipe = draft(&site, "conferences", "list.json");
    let part = "\"id\",    # 1 cell, such as `7`; map it to `id` only if";
    write_recipe(&site, rows, &recipe, &[part]);
    let done = import_new(&site, "list.json");
    assert_eq!(done.code, Some(0), "{recipe}{done:?}");
    let rows = stored(&site, "conferences");
    for (row, pointer, expected) in cases![
        0, "/name", "Alpha Days";
        0, "/end_date", "2026-05-05";
        1, "/city", "Graz";
        1, "/therapy_areas/1", "Surgery";
    ] {
        let value = rows[row].pointer(pointer).unwrap();
        assert_eq!(value, expected, "{recipe}");
    }
}

#[test]
fn letters_need_the_number_of_header_rows() {
    let recipe = "dataset = \"journals\"\nmatch = [[\"name\"]]\n";
    let columns = "[columns]\n\"=A\" = \"name\"\n\"=B\" = \"abbv\"\n";
    let list =
        "Alpha Journal of Lungs,Alpha J Lungs\nBeta Archives,Beta Arch\nGamma Letters,Gamma Lett\n";
    for (header, expected) in cases![
        "", None;
        "header_rows = 0\n", Some(3);
        "header_rows = 1\n", Some(2);
    ] {
        let site = Site::new();
        site.write("list.csv", list);
        site.write("list.toml", format!("{recipe}{header}{columns}"));
        let done = import_new(&site, "list.csv");
        match expected {
            Some(count) => assert_eq!(stored(&site, "journals").len(), count, "{done:?}"),
            None => done.assert_told(1, "write in a recipe whether the file has a header"),
        }
    }
}

#[test]
fn lists_of_many_shapes_are_loaded_by_their_drafts() {
    let tables = TABLES.iter().map(|shape| ("list.csv", shape));
    let objects = OBJECTS.iter().map(|shape| ("list.json", shape));
    let failed = tables
        .chain(objects)
        .filter(|(name, shape)| catch_unwind(|| check(name, shape)).is_err())
        .count();
    assert_eq!(failed, 0, "of {} shapes", TABLES.len() + OBJECTS.len());
}

#[test]
fn a_row_without_a_name_is_the_only_bad_one() {
    let site = Site::new();
    let list = "Event;Start;City\n;2026-01-15;Graz\nHeart Days;2026-02-15;Wien\nLung Days;2026-03-15;Linz\n";
    site.write("list.csv", list);
    let recipe = draft(&site, "conferences", "list.csv");
    assert!(!recipe.contains("header_rows"), "{recipe}");
    assert_contains(&recipe, "1 fault would refuse the import");
    site.write("list.toml", &recipe);
    let mut args = vec!["import", "list.csv", "--recipe", "list.toml", "--create"];
    let refused = site.run(&args);
    refused.assert_told(1, "list.csv:2: name: is required; give a text\n");
    assert!(refused.stderr.starts_with("list.csv:2"), "{refused:?}");
    args.extend(["--allow-faults", "1"]);
    assert_eq!(site.run(&args).code, Some(0));
    let rows = stored(&site, "conferences");
    let shown = |row: &Value| format!("{} {} {}", row["name"], row["start_date"], row["city"]);
    let shown: Vec<String> = rows.iter().map(shown).collect();
    let expected = words![
        r#""Heart Days" "2026-02-15" "Wien""# r#""Lung Days" "2026-03-15" "Linz""#
    ];
    assert_eq!(shown, expected);
}

/// A list that is imported after another one, in two commands each.
struct Second {
    kind: &'static str,
    /// A file with ids, or a list of others, whose recipe is drafted.
    first: (&'static str, &'static str),
    second: &'static str,
    options: &'static [&'static str],
    /// Values of the stored rows.
    members: &'static [&'static str],
    stored: &'static [&'static str],
}

const MEETINGS: &str = "Meeting;Dates;Place\nHeart Days;3-5 May 2026;Graz, Austria\n";

#[rustfmt::skip]
const SECONDS: &[Second] = &[
    // A citation report keeps what it does not know. An ISSN stays in its field.
    Second {
        kind: "journals",
        first: ("journals.csv", "id,name,issn_print,issn_online,publisher\n1,Landscape Notes,,1865-1542,Alpha Press\n\
                 2,Cardio Letters,0028-4793,1533-4406,Beta Press\n"),
        second: "Journal,ISSN,eISSN,Publisher,JIF\nLANDSCAPE NOTES,1865-1542,N/A,,2.1\nCARDIO LETTERS,0028-4793,N/A,N/A,3.2\n\
                 UNKNOWN LETTERS,1666-6046,N/A,Gamma Press,1.2\n",
        options: &[],
        members: &["name", "issn_print", "issn_online", "publisher", "impact_factor"],
        stored: &[
            r#"["Landscape Notes",null,"1865-1542","Alpha Press",2.1]"#,
            r#"["Cardio Letters","0028-4793","1533-4406","Beta Press",3.2]"#,
            r#"["UNKNOWN LETTERS","1666-6046",null,"Gamma Press",1.2]"#,
        ],
    },
    // A meeting whose dates moved is the same one.
    Second {
        kind: "conferences",
        first: ("first.csv", "Meeting;Dates;Place\nSpring Lung Meeting;12-15 June 2026;Lyon, France\nHeart Days;3-5 May 2026;Graz, Austria\n"),
        second: "Meeting;Dates;Place\nSpring Lung Meeting;19-22 June 2026;Lyon, France\nHeart Days;3-5 May 2026;Graz, Austria\n",
        options: &[],
        members: &["id", "name", "start_date", "end_date"],
        stored: &[
            r#"[1,"Spring Lung Meeting","2026-06-19","2026-06-22"]"#,
            r#"[2,"Heart Days","2026-05-03","2026-05-05"]"#,
        ],
    },
    // Codes are countries, also in a new kind of rows.
    Second {
        kind: "conferences",
        first: ("first.csv", MEETINGS),
        second: "Event,City,Country,Start\nAlpha Days,Graz,AUT,2026-03-01\nBeta Days,Bonn,DEU,2026-03-08\n\
                 Gamma Days,Split,HRV,2026-03-15\nDelta Days,Leeds,GBR,2026-03-22\nEpsilon Days,Izmir,TUR,2026-04-01\n",
        options: &["--fix"],
        members: &["name", "country"],
        stored: &[
            r#"["Heart Days","Austria"]"#, r#"["Alpha Days","Austria"]"#, r#"["Beta Days","Germany"]"#, r#"["Gamma Days","Croatia"]"#,
            r#"["Delta Days","United Kingdom"]"#, r#"["Epsilon Days","Turkey"]"#,
        ],
    },
];

/// Imports a file. A list of others is imported by its drafted recipe.
fn import_drafted(site: &Site, kind: &str, name: &str, options: &[&str]) -> Value {
    let mut args = vec!["import", name, "--create"];
    args.extend(options);
    if name != "journals.csv" {
        let recipe = draft(site, kind, name);
        site.write("list.toml", recipe);
        args.extend(["--recipe", "list.toml"]);
    }
    site.json(args)
}

#[test]
fn a_second_list_adds_to_the_first() {
    for second in SECONDS {
        let site = Site::new();
        let (name, content) = second.first;
        site.write(name, content);
        import_drafted(&site, second.kind, name, &[]);
        site.write("second.csv", second.second);
        import_drafted(&site, second.kind, "second.csv", second.options);
        let rows = stored(&site, second.kind);
        let members = |row: &Value| -> Value {
            let member = |name: &&str| row.pointer(&format!("/{}", name.replace('.', "/")));
            let members = second.members.iter().map(member);
            members
                .map(|member| member.cloned().unwrap_or_default())
                .collect()
        };
        let shown: Vec<String> = rows.iter().map(|row| members(row).to_string()).collect();
        assert_eq!(shown, second.stored, "{}", second.second);
        let again = import_drafted(&site, second.kind, "second.csv", second.options);
        let counts = &again["datasets"][second.kind];
        for change in ["added", "changed", "removed"] {
            assert_eq!(counts[change].as_u64().unwrap_or(0), 0, "{again}");
        }
    }
}
