//! Tests of the documentation against the contract.

use serde_json::{Value, json};

use super::*;
use crate::contract::{
    CONTRACT, Code, CodeInfo, Endpoint, Parameter, ParameterForm, Query, WhenAbsent,
};

const PUBLIC_URL: &str = "https://feed.example.org";

fn text(contract: &Contract, path: &str) -> String {
    let page =
        find_page(contract, path, PUBLIC_URL, None).unwrap_or_else(|| panic!("{path} is missing"));
    String::from_utf8(page.1).unwrap()
}

#[test]
fn every_docs_page_is_found_by_its_path() {
    let paths = words!["/openapi.json" "/docs" "/docs/page.js" "/docs/follow.py" "/docs/errors"];
    let mut paths: Vec<String> = paths.map(str::to_owned).to_vec();
    paths.extend(
        CONTRACT
            .codes
            .iter()
            .map(|info| format!("/docs/errors/{}", info.name)),
    );
    for path in paths {
        assert!(!text(&CONTRACT, &path).is_empty(), "{path}");
    }
}

#[test]
fn other_paths_are_not_found() {
    for path in words!["" "/" "/docs/" "/docs/errors/" "/docs/errors/no_such" "/Docs" "/v1" "/openapi.json/"]
    {
        let found = find_page(&CONTRACT, path, PUBLIC_URL, None);
        assert_eq!(found, None, "{path:?}");
    }
}

/// The contract with one more parameter, endpoint and code.
fn extended() -> Contract {
    let language = Parameter {
        name: "language",
        component: "Language",
        location: "query",
        form: ParameterForm::Choice(&["en", "de"]),
        absent: WhenAbsent::Default("en"),
        note: "The language of names",
    };
    let mut endpoints = CONTRACT.endpoints.to_vec();
    endpoints[0].parameters = [endpoints[0].parameters, &[language]].concat().leak();
    let latest = Endpoint {
        pattern: "/v1/journals/latest",
        operation: "listLatest",
        ..endpoints[4]
    };
    endpoints.insert(0, latest);
    let frozen = CodeInfo {
        name: "frozen",
        status: http::StatusCode::LOCKED,
        title: "The data are frozen",
        request: "GET /v1/conferences",
        detail: "The data of {public_url} are frozen.",
        ..*Code::Unavailable.info()
    };
    Contract {
        endpoints: endpoints.leak(),
        codes: [CONTRACT.codes, &[frozen]].concat().leak(),
    }
}

#[test]
fn declared_parameters_are_accepted() {
    let contract = extended();
    let parse = |target: &str| {
        let (path, query) = target.split_once('?').unwrap();
        let endpoint = contract.route(path).unwrap().endpoint;
        Query::of(endpoint, Some(query))
            .parse::<Value>()
            .map_err(|refused| refused.detail)
    };
    let taken = |limit: u64, language: &str| Ok(json!({"limit": limit, "language": language}));
    assert_eq!(parse("/v1/conferences?limit=7"), taken(7, "en"));
    assert_eq!(parse("/v1/conferences?language=de"), taken(100, "de"));
    let refused = Err("Parameter `language`: must be `en` or `de`.".to_owned());
    assert_eq!(parse("/v1/conferences?language=fr"), refused);
    assert_eq!(
        contract
            .route("/v1/journals/latest")
            .unwrap()
            .endpoint
            .operation,
        "listLatest"
    );
    let unknown = parse("/v1/conferences?langage=de").unwrap_err();
    assert!(
        unknown.contains("Did you mean `language`?")
            && unknown.ends_with("`therapy_area`, `language`."),
        "{unknown}"
    );
}

#[test]
fn declared_parameters_are_documented() {
    let contract = extended();
    let document: Value = serde_json::from_str(&text(&contract, "/openapi.json")).unwrap();
    let language = &document["components"]["parameters"]["Language"];
    let schema = json!({"type": "string", "enum": ["en", "de"], "default": "en"});
    let expected = json!({"name": "language", "in": "query", "description": "The language of names", "schema": schema});
    assert_eq!(language, &expected);
    let listed = document["paths"]["/conferences"]["get"]["parameters"]
        .as_array()
        .unwrap();
    assert!(
        listed.contains(&json!({"$ref": "#/components/parameters/Language"})),
        "{listed:?}"
    );
    assert_eq!(
        document["paths"]["/journals/latest"]["get"]["operationId"],
        "listLatest"
    );
    assert_eq!(
        document["paths"]["/status"]["get"]["responses"]["423"]["$ref"],
        "#/components/responses/Locked"
    );
    let told = document["components"]["responses"]["Locked"].to_string();
    assert!(told.contains("`frozen`: The data are frozen"));
    let example = &document["components"]["examples"]["frozen"]["value"];
    assert_eq!(
        example["detail"],
        format!("The data of {PUBLIC_URL} are frozen.")
    );

    let row = "<td data-label=\"Parameter\"><code>language</code></td><td data-label=\"In\">query</td><td data-label=\"Values\">\
               <code>en</code> or <code>de</code>; default <code>en</code></td><td data-label=\"Notes\">The language of names\
               </td>";
    let cases = cases![
        "/docs", row;
        "/docs", "<code>GET /journals/latest</code>";
        "/docs", "href=\"docs/errors/frozen\"";
        "/docs/errors", "href=\"errors/frozen\"";
        "/docs/errors/frozen", "423 Locked";
        "/docs/errors/unknown_parameter", "`therapy_area`, `language`.";
    ];
    for (path, piece) in cases {
        let (page, without) = (
            text(&contract, path),
            find_page(&CONTRACT, path, PUBLIC_URL, None),
        );
        assert!(page.contains(piece), "{piece} is missing in {path}: {page}");
        let without = without
            .map(|page| String::from_utf8(page.1).unwrap())
            .unwrap_or_default();
        assert!(!without.contains(piece), "{piece} is in {path} anyway");
    }
}

#[test]
fn every_documented_parameter_is_parsed_into_its_type() {
    use crate::contract::Resource;
    use crate::contract::parameters::{
        ChangesParameters, ExportParameters, ListParameters, ReferenceParameters,
    };
    for endpoint in CONTRACT.endpoints {
        let value = |parameter: &Parameter| match parameter.form {
            ParameterForm::Whole(_, max) => max.to_string(),
            ParameterForm::Text
            | ParameterForm::Length(..)
            | ParameterForm::Cursor
            | ParameterForm::SyncToken => "Ärzte %26+co".replace('Ä', "%C3%84"),
            ParameterForm::Date | ParameterForm::Time => "2026-03-15".to_owned(),
            ParameterForm::Choice(values) => values[values.len() - 1].to_owned(),
            ParameterForm::Number => "4.2".to_owned(),
            ParameterForm::Id | ParameterForm::ETags => panic!("{} in a query", parameter.name),
        };
        let given: Vec<String> = endpoint
            .parameters
            .iter()
            .map(|one| format!("{}={}", one.name, value(one)))
            .collect();
        let given = given.join("&");
        let query = Query::of(endpoint, Some(&given));
        // Every parameter has a field of its name in the struct.
        let shown = match endpoint.resource {
            Resource::List(_) => format!("{:?}", query.parse::<ListParameters>().unwrap()),
            Resource::Changes(_) => format!("{:?}", query.parse::<ChangesParameters>().unwrap()),
            Resource::Export => format!("{:?}", query.parse::<ExportParameters>().unwrap()),
            Resource::Tags | Resource::Organizations => {
                format!("{:?}", query.parse::<ReferenceParameters>().unwrap())
            }
            _ => continue,
        };
        let shown = shown.replace("filters: ", "");
        let taken = shown.matches(": ").count() - shown.matches(": None").count();
        let expected = endpoint.parameters.len();
        assert_eq!(taken, expected, "{}: {shown}", endpoint.pattern);
    }
}

#[test]
fn addresses_in_the_guide_are_valid() {
    let page = text(&CONTRACT, "/docs")
        .replace("&amp;", "&")
        .replace("&apos;", "'");
    let base_url = format!("{PUBLIC_URL}/v1");
    let mut count = 0;
    for rest in page
        .split(&base_url)
        .skip(1)
        .filter(|rest| rest.starts_with('/'))
    {
        let target = rest.split(['\'', '"', '<']).next().unwrap();
        let (path, query) = target
            .split_once('?')
            .map_or((target, None), |(path, query)| (path, Some(query)));
        let route = CONTRACT
            .route(&format!("/v1{path}"))
            .unwrap_or_else(|| panic!("no endpoint {path}"));
        if let Err(refused) = Query::of(route.endpoint, query).parse::<Value>() {
            panic!("{target}: {}", refused.detail);
        }
        count += 1;
    }
    assert!(count >= 9, "only {count} addresses were found");
}
