//! Countries: their usual English names, their regions, and other names of them.
//!
//! The regions are those of the United Nations' standard M49. It counts Cyprus, Georgia and Turkey among Asia, and
//! Russia among Europe.

use super::fold::fold;

/// The regions of the world, each with its countries by their usual English names, and territories that conferences
/// name like countries.
#[rustfmt::skip]
pub const REGIONS: [(&str, &[&str]); 5] = [
    // M49 region 002.
    ("Africa", &[
        "Algeria", "Angola", "Benin", "Botswana", "Burkina Faso", "Burundi", "Cameroon", "Cape Verde",
        "Central African Republic", "Chad", "Comoros", "Congo", "Democratic Republic of the Congo", "Djibouti", "Egypt",
        "Equatorial Guinea", "Eritrea", "Eswatini", "Ethiopia", "Gabon", "Gambia", "Ghana", "Guinea", "Guinea-Bissau",
        "Ivory Coast", "Kenya", "Lesotho", "Liberia", "Libya", "Madagascar", "Malawi", "Mali", "Mauritania", "Mauritius",
        "Morocco", "Mozambique", "Namibia", "Niger", "Nigeria", "Réunion", "Rwanda", "São Tomé and Príncipe", "Senegal",
        "Seychelles", "Sierra Leone", "Somalia", "South Africa", "South Sudan", "Sudan", "Tanzania", "Togo", "Tunisia",
        "Uganda", "Zambia", "Zimbabwe",
    ]),
    // M49 region 019.
    ("Americas", &[
        "Antigua and Barbuda", "Argentina", "Aruba", "Bahamas", "Barbados", "Belize", "Bermuda", "Bolivia", "Brazil",
        "Canada", "Cayman Islands", "Chile", "Colombia", "Costa Rica", "Cuba", "Curaçao", "Dominica",
        "Dominican Republic", "Ecuador", "El Salvador", "Greenland", "Grenada", "Guadeloupe", "Guatemala", "Guyana",
        "Haiti", "Honduras", "Jamaica", "Martinique", "Mexico", "Nicaragua", "Panama", "Paraguay", "Peru", "Puerto Rico",
        "Saint Kitts and Nevis", "Saint Lucia", "Saint Vincent and the Grenadines", "Suriname", "Trinidad and Tobago",
        "United States", "Uruguay", "Venezuela",
    ]),
    // M49 region 142, and Taiwan, which M49 does not list.
    ("Asia", &[
        "Afghanistan", "Armenia", "Azerbaijan", "Bahrain", "Bangladesh", "Bhutan", "Brunei", "Cambodia", "China",
        "Cyprus", "Georgia", "Hong Kong", "India", "Indonesia", "Iran", "Iraq", "Israel", "Japan", "Jordan", "Kazakhstan",
        "Kuwait", "Kyrgyzstan", "Laos", "Lebanon", "Macau", "Malaysia", "Maldives", "Mongolia", "Myanmar", "Nepal",
        "North Korea", "Oman", "Pakistan", "Palestine", "Philippines", "Qatar", "Saudi Arabia", "Singapore",
        "South Korea", "Sri Lanka", "Syria", "Taiwan", "Tajikistan", "Thailand", "Timor-Leste", "Turkey", "Turkmenistan",
        "United Arab Emirates", "Uzbekistan", "Vietnam", "Yemen",
    ]),
    // M49 region 150, and Kosovo, which M49 does not list.
    ("Europe", &[
        "Albania", "Andorra", "Austria", "Belarus", "Belgium", "Bosnia and Herzegovina", "Bulgaria", "Croatia", "Czechia",
        "Denmark", "Estonia", "Faroe Islands", "Finland", "France", "Germany", "Gibraltar", "Greece", "Hungary",
        "Iceland", "Ireland", "Italy", "Kosovo", "Latvia", "Liechtenstein", "Lithuania", "Luxembourg", "Malta", "Moldova",
        "Monaco", "Montenegro", "Netherlands", "North Macedonia", "Norway", "Poland", "Portugal", "Romania", "Russia",
        "San Marino", "Serbia", "Slovakia", "Slovenia", "Spain", "Sweden", "Switzerland", "Ukraine", "United Kingdom",
        "Vatican City",
    ]),
    // M49 region 009.
    ("Oceania", &[
        "Australia", "Fiji", "French Polynesia", "Guam", "Kiribati", "Marshall Islands", "Micronesia", "Nauru",
        "New Caledonia", "New Zealand", "Palau", "Papua New Guinea", "Samoa", "Solomon Islands", "Tonga", "Tuvalu",
        "Vanuatu",
    ]),
];

/// The countries of [`REGIONS`].
pub const COUNTRIES: [&[&str]; 5] = [
    REGIONS[0].1,
    REGIONS[1].1,
    REGIONS[2].1,
    REGIONS[3].1,
    REGIONS[4].1,
];

/// Names that do not look alike, in their [`comparable`] form: one group for each country, its usual name first.
const ALIASES: &str = "unitedstates unitedstatesofamerica us usa;\
    unitedkingdom unitedkingdomofgreatbritainandnorthernireland uk greatbritain gb gbr england scotland wales northernireland;\
    southkorea korea republicofkorea korearepublicof koreasouth skorea rok kor;unitedarabemirates uae;\
    china peoplesrepublicofchina prc prchina chn;hongkong hongkongsar hongkongsarchina hongkongchina;\
    macau macao macaosar;czechia czechrepublic cze;netherlands holland nederland nld;turkey turkiye;\
    russia russianfederation;vietnam socialistrepublicofvietnam;\
    iran iranislamicrepublicof islamicrepublicofiran;syria syrianarabrepublic;\
    moldova republicofmoldova moldovarepublicof;tanzania unitedrepublicoftanzania tanzaniaunitedrepublicof;\
    bolivia plurinationalstateofbolivia boliviaplurinationalstateof;\
    venezuela bolivarianrepublicofvenezuela venezuelabolivarianrepublicof;\
    laos laopeoplesdemocraticrepublic laopdr;brunei bruneidarussalam;ivorycoast cotedivoire;\
    capeverde caboverde;northmacedonia macedonia;eswatini swaziland;myanmar burma;\
    saudiarabia kingdomofsaudiarabia ksa;ireland republicofireland;\
    germany deutschland federalrepublicofgermany ger deu allemagne;spain espana esp;italy italia ita;\
    austria osterreich aut;switzerland schweiz suisse svizzera sui che;france fra frankreich;\
    japan nippon jpn jp;poland polska pol;brazil brasil bra;belgium belgie belgique bel;sweden sverige swe;\
    norway norge nor;denmark danmark dnk;finland suomi fin;canada can;australia aus;india ind;portugal prt;\
    greece hellas grc;hungary magyarorszag hun;bosniaandherzegovina bosnia";

/// The codes of countries, each with its usual name (ISO 3166-1). `USA` is a name, and `NA` a word for no value.
const CODES: &str = "AF AFG Afghanistan;AL ALB Albania;DZ DZA Algeria;AD AND Andorra;AO AGO Angola;AG ATG Antigua and Barbuda;\
    AR ARG Argentina;AM ARM Armenia;AW ABW Aruba;AU AUS Australia;AT AUT Austria;AZ AZE Azerbaijan;\
    BS BHS Bahamas;BH BHR Bahrain;BD BGD Bangladesh;BB BRB Barbados;BY BLR Belarus;BE BEL Belgium;\
    BZ BLZ Belize;BJ BEN Benin;BM BMU Bermuda;BT BTN Bhutan;BO BOL Bolivia;BA BIH Bosnia and Herzegovina;\
    BW BWA Botswana;BR BRA Brazil;BN BRN Brunei;BG BGR Bulgaria;BF BFA Burkina Faso;BI BDI Burundi;\
    KH KHM Cambodia;CM CMR Cameroon;CA CAN Canada;CV CPV Cape Verde;KY CYM Cayman Islands;\
    CF CAF Central African Republic;TD TCD Chad;CL CHL Chile;CN CHN China;CO COL Colombia;KM COM Comoros;\
    CG COG Congo;CR CRI Costa Rica;HR HRV Croatia;CU CUB Cuba;CW CUW Curaçao;CY CYP Cyprus;CZ CZE Czechia;\
    CD COD Democratic Republic of the Congo;DK DNK Denmark;DJ DJI Djibouti;DM DMA Dominica;\
    DO DOM Dominican Republic;EC ECU Ecuador;EG EGY Egypt;SV SLV El Salvador;GQ GNQ Equatorial Guinea;\
    ER ERI Eritrea;EE EST Estonia;SZ SWZ Eswatini;ET ETH Ethiopia;FO FRO Faroe Islands;FJ FJI Fiji;\
    FI FIN Finland;FR FRA France;PF PYF French Polynesia;GA GAB Gabon;GM GMB Gambia;GE GEO Georgia;\
    DE DEU Germany;GH GHA Ghana;GI GIB Gibraltar;GR GRC Greece;GL GRL Greenland;GD GRD Grenada;\
    GP GLP Guadeloupe;GU GUM Guam;GT GTM Guatemala;GN GIN Guinea;GW GNB Guinea-Bissau;GY GUY Guyana;\
    HT HTI Haiti;HN HND Honduras;HK HKG Hong Kong;HU HUN Hungary;IS ISL Iceland;IN IND India;ID IDN Indonesia;\
    IR IRN Iran;IQ IRQ Iraq;IE IRL Ireland;IL ISR Israel;IT ITA Italy;CI CIV Ivory Coast;JM JAM Jamaica;\
    JP JPN Japan;JO JOR Jordan;KZ KAZ Kazakhstan;KE KEN Kenya;KI KIR Kiribati;XK XKX Kosovo;KW KWT Kuwait;\
    KG KGZ Kyrgyzstan;LA LAO Laos;LV LVA Latvia;LB LBN Lebanon;LS LSO Lesotho;LR LBR Liberia;LY LBY Libya;\
    LI LIE Liechtenstein;LT LTU Lithuania;LU LUX Luxembourg;MO MAC Macau;MG MDG Madagascar;MW MWI Malawi;\
    MY MYS Malaysia;MV MDV Maldives;ML MLI Mali;MT MLT Malta;MH MHL Marshall Islands;MQ MTQ Martinique;\
    MR MRT Mauritania;MU MUS Mauritius;MX MEX Mexico;FM FSM Micronesia;MD MDA Moldova;MC MCO Monaco;\
    MN MNG Mongolia;ME MNE Montenegro;MA MAR Morocco;MZ MOZ Mozambique;MM MMR Myanmar;-- NAM Namibia;\
    NR NRU Nauru;NP NPL Nepal;NL NLD Netherlands;NC NCL New Caledonia;NZ NZL New Zealand;NI NIC Nicaragua;\
    NE NER Niger;NG NGA Nigeria;KP PRK North Korea;MK MKD North Macedonia;NO NOR Norway;OM OMN Oman;\
    PK PAK Pakistan;PW PLW Palau;PS PSE Palestine;PA PAN Panama;PG PNG Papua New Guinea;PY PRY Paraguay;\
    PE PER Peru;PH PHL Philippines;PL POL Poland;PT PRT Portugal;PR PRI Puerto Rico;QA QAT Qatar;\
    RE REU Réunion;RO ROU Romania;RU RUS Russia;RW RWA Rwanda;KN KNA Saint Kitts and Nevis;LC LCA Saint Lucia;\
    VC VCT Saint Vincent and the Grenadines;WS WSM Samoa;SM SMR San Marino;ST STP São Tomé and Príncipe;\
    SA SAU Saudi Arabia;SN SEN Senegal;RS SRB Serbia;SC SYC Seychelles;SL SLE Sierra Leone;SG SGP Singapore;\
    SK SVK Slovakia;SI SVN Slovenia;SB SLB Solomon Islands;SO SOM Somalia;ZA ZAF South Africa;\
    KR KOR South Korea;SS SSD South Sudan;ES ESP Spain;LK LKA Sri Lanka;SD SDN Sudan;SR SUR Suriname;\
    SE SWE Sweden;CH CHE Switzerland;SY SYR Syria;TW TWN Taiwan;TJ TJK Tajikistan;TZ TZA Tanzania;\
    TH THA Thailand;TL TLS Timor-Leste;TG TGO Togo;TO TON Tonga;TT TTO Trinidad and Tobago;TN TUN Tunisia;\
    TR TUR Turkey;TM TKM Turkmenistan;TV TUV Tuvalu;UG UGA Uganda;UA UKR Ukraine;AE ARE United Arab Emirates;\
    GB GBR United Kingdom;US --- United States;UY URY Uruguay;UZ UZB Uzbekistan;VU VUT Vanuatu;\
    VA VAT Vatican City;VE VEN Venezuela;VN VNM Vietnam;YE YEM Yemen;ZM ZMB Zambia;ZW ZWE Zimbabwe";

/// Returns the country of a code in capitals.
fn country_of(code: &str) -> Option<&'static str> {
    let is_code = matches!(code.len(), 2 | 3) && code.bytes().all(|byte| byte.is_ascii_uppercase());
    let mut entries = CODES.split(';').filter(|_| is_code);
    let entry = entries.find(|entry| entry[..2] == *code || entry[3..6] == *code)?;
    Some(&entry[7..])
}

/// Whether a text is the code of a country, in capitals.
pub fn is_code(text: &str) -> bool {
    country_of(text.trim()).is_some()
}

/// The usual name of the country that a text means, in any spelling.
pub fn known_country(text: &str) -> Option<&'static str> {
    let form = comparable(text);
    let mut countries = COUNTRIES.iter().copied().flatten().copied();
    countries.find(|country| comparable(country) == form)
}

/// Whether a text is the name of a known country, in any spelling.
pub fn is_country(text: &str) -> bool {
    known_country(text).is_some()
}

/// Whether two spellings mean one country.
pub fn same_country(one: &str, other: &str) -> bool {
    comparable(one) == comparable(other)
}

/// The form of a country's name by which spellings are compared: letters only, and one form for all aliases.
pub fn comparable(country: &str) -> String {
    let country = country_of(country.trim()).unwrap_or(country);
    let folded = fold(country).replace('&', " and ");
    let folded = folded.trim_start().strip_prefix("the ").unwrap_or(&folded);
    let letters: String = folded
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .collect();
    let mut groups = ALIASES.split(';').map(|names| names.split(' '));
    let group = groups.find_map(|mut names| {
        let usual = names.next()?;
        (usual == letters || names.any(|name| name == letters)).then_some(usual)
    });
    group.map_or(letters, str::to_owned)
}

/// The other names of a country, in their [`comparable`] form.
pub fn aliases(country: &str) -> impl Iterator<Item = &'static str> {
    let comparable = comparable(country);
    let groups = ALIASES.split(';').map(|names| names.split(' '));
    groups
        .filter_map(move |mut names| (names.next()? == comparable).then_some(names))
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_country_has_one_region() {
        let mut seen = BTreeSet::new();
        for (region, countries) in REGIONS {
            assert!(!countries.is_empty(), "{region}");
            for country in countries {
                assert!(
                    seen.insert(comparable(country)),
                    "{country} is in two regions"
                );
            }
        }
        let known = COUNTRIES.iter().copied();
        let known: BTreeSet<String> = known.flatten().map(|country| comparable(country)).collect();
        assert_eq!(seen, known);
        assert!(seen.len() > 200, "{} countries", seen.len());
        // Each group of aliases belongs to one of them.
        for names in ALIASES.split(';') {
            let usual = names.split(' ').next().unwrap();
            assert!(seen.contains(usual), "{usual} has no region");
        }
    }

    #[test]
    fn regions_are_those_of_m49() {
        let cases = outcomes![
            "Germany" "Russia" "Kosovo" "Malta" "Iceland" "Faroe Islands" "Vatican City" "Albania"
                => "Europe";
            "Turkey" "Cyprus" "Georgia" "Armenia" "Azerbaijan" "Kazakhstan" "Israel" "Timor-Leste"
            "Maldives" "Yemen" "Taiwan" => "Asia";
            "Egypt" "Réunion" "Mauritius" "Cape Verde" "Sudan" "Algeria" "Zimbabwe" => "Africa";
            "Greenland" "Mexico" "Panama" "Bermuda" "Venezuela" => "Americas";
            "Guam" "Papua New Guinea" "French Polynesia" "Vanuatu" "Australia" => "Oceania";
        ];
        let counts = REGIONS.map(|(region, countries)| (region, countries.len()));
        assert_eq!(
            counts,
            [
                ("Africa", 55),
                ("Americas", 43),
                ("Asia", 51),
                ("Europe", 47),
                ("Oceania", 17)
            ]
        );
        for (country, expected) in cases {
            let region = REGIONS
                .iter()
                .find(|(_, countries)| countries.contains(&country));
            assert_eq!(region.map(|(name, _)| *name), Some(expected), "{country}");
        }
    }

    #[test]
    fn spellings_of_one_country_compare_equal() {
        let cases = [
            ("USA", "United States", true),
            ("U.S.A.", "the United States of America", true),
            ("España", "Spain", true),
            ("GER", "Deutschland", true),
            ("US", "usa", true),
            ("UK", "United Kingdom", true),
            ("South Korea", "Republic of Korea", true),
            ("Korea, Republic of", "Korea", true),
            ("Türkiye", "Turkey", true),
            ("Viet Nam", "Vietnam", true),
            ("The Netherlands", "Netherlands", true),
            ("Côte d'Ivoire", "Ivory Coast", true),
            ("Bosnia & Herzegovina", "Bosnia and Herzegovina", true),
            ("españa", "España", true),
            ("日本", "日本 ", true),
            ("the United  States", "U.S.", true),
            ("Cote d’Ivoire", "IVORY COAST", true),
            ("Theland", "land", false),
            ("The", "", false),
            // Names that contain another name, or begin or end with one.
            ("Guinea", "Guinea-Bissau", false),
            ("Guinea", "Equatorial Guinea", false),
            ("Papua New Guinea", "Guinea", false),
            ("Congo", "Democratic Republic of the Congo", false),
            ("Dominica", "Dominican Republic", false),
            ("Sudan", "South Sudan", false),
            ("US", "Russia", false),
            ("USSR", "US", false),
            ("Samoa", "American Samoa", false),
            ("AUS", "AUT", false),
            ("Austria", "Australia", false),
            ("Niger", "Nigeria", false),
            ("North Korea", "South Korea", false),
            ("日本", "中国", false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(
                comparable(one) == comparable(other),
                expected,
                "{one:?} and {other:?}"
            );
        }
    }

    #[test]
    fn aliases_of_a_country_leave_out_its_usual_name() {
        let cases: [(&str, &[&str]); 5] = [
            ("United States", &["unitedstatesofamerica", "us", "usa"]),
            ("USA", &["unitedstatesofamerica", "us", "usa"]),
            ("Bosnia and Herzegovina", &["bosnia"]),
            ("Spain", &["espana", "esp"]),
            ("Nigeria", &[]),
        ];
        for (country, expected) in cases {
            assert_eq!(aliases(country).collect::<Vec<_>>(), expected, "{country}");
        }
    }

    #[test]
    fn aliases_are_in_their_comparable_form_and_occur_once() {
        let mut seen = BTreeSet::new();
        for name in ALIASES.split([';', ' ']) {
            assert!(
                name.chars().all(|letter| letter.is_ascii_lowercase()),
                "{name}"
            );
            assert!(seen.insert(name), "{name}");
        }
    }
}
