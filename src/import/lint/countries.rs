//! Countries: their usual English names, and aliases.

use super::spellings::Vocabulary;
use crate::model::fold::fold;

/// The vocabulary of countries, which licenses and the filter `country` use.
pub(super) static COUNTRIES: Vocabulary = Vocabulary {
    code: 1,
    field: "country",
    kind: "country",
    remedy: "write the usual English name of one country, such as `Germany`, or leave the cell empty",
    rules: ["country_spelling", "country_spelling", "country_unknown"],
    comparable,
    known: KNOWN,
    separators: &[],
    of_scope: |scope| scope.countries.as_ref(),
};

/// Names of the same country that do not resemble each other, in their [`comparable`] form. The first one is the usual
/// name.
const ALIASES: &[&[&str]] = &[
    &["unitedstates", "unitedstatesofamerica", "us", "usa"],
    &["unitedkingdom", "unitedkingdomofgreatbritainandnorthernireland", "uk", "greatbritain", "gb", "gbr"],
    &["southkorea", "korea", "republicofkorea", "korearepublicof", "koreasouth", "skorea", "rok", "kor"],
    &["unitedarabemirates", "uae"],
    &["china", "peoplesrepublicofchina", "prc", "prchina", "chn"],
    &["hongkong", "hongkongsar", "hongkongsarchina", "hongkongchina"],
    &["macau", "macao", "macaosar"],
    &["czechia", "czechrepublic", "cze"],
    &["netherlands", "holland", "nederland", "nld"],
    &["turkey", "turkiye"],
    &["russia", "russianfederation"],
    &["vietnam", "socialistrepublicofvietnam"],
    &["iran", "iranislamicrepublicof", "islamicrepublicofiran"],
    &["syria", "syrianarabrepublic"],
    &["moldova", "republicofmoldova", "moldovarepublicof"],
    &["tanzania", "unitedrepublicoftanzania", "tanzaniaunitedrepublicof"],
    &["bolivia", "plurinationalstateofbolivia", "boliviaplurinationalstateof"],
    &["venezuela", "bolivarianrepublicofvenezuela", "venezuelabolivarianrepublicof"],
    &["laos", "laopeoplesdemocraticrepublic", "laopdr"],
    &["brunei", "bruneidarussalam"],
    &["ivorycoast", "cotedivoire"],
    &["capeverde", "caboverde"],
    &["northmacedonia", "macedonia"],
    &["eswatini", "swaziland"],
    &["myanmar", "burma"],
    &["saudiarabia", "kingdomofsaudiarabia", "ksa"],
    &["ireland", "republicofireland"],
    &["germany", "deutschland", "federalrepublicofgermany", "ger", "deu", "allemagne"],
    &["spain", "espana", "esp"],
    &["italy", "italia", "ita"],
    &["austria", "osterreich", "aut"],
    &["switzerland", "schweiz", "suisse", "svizzera", "sui", "che"],
    &["france", "fra", "frankreich"],
    &["japan", "nippon", "jpn", "jp"],
    &["poland", "polska", "pol"],
    &["brazil", "brasil", "bra"],
    &["belgium", "belgie", "belgique", "bel"],
    &["sweden", "sverige", "swe"],
    &["norway", "norge", "nor"],
    &["denmark", "danmark", "dnk"],
    &["finland", "suomi", "fin"],
    &["canada", "can"],
    &["australia", "aus"],
    &["india", "ind"],
    &["portugal", "prt"],
    &["greece", "hellas", "grc"],
    &["hungary", "magyarorszag", "hun"],
    &["bosniaandherzegovina", "bosnia"],
];

/// Returns true if both names denote the same country.
pub fn same_country(one: &str, other: &str) -> bool {
    comparable(one) == comparable(other)
}

/// Returns the name without case, diacritics, blanks and punctuation. Aliases become the usual name.
fn comparable(country: &str) -> String {
    let folded = fold(country).replace('&', " and ");
    let folded = folded.trim_start().strip_prefix("the ").unwrap_or(&folded);
    let letters: String = folded.chars().filter(|letter| letter.is_alphanumeric()).collect();
    match ALIASES.iter().find(|names| names.contains(&letters.as_str())) {
        Some(names) => names[0].to_owned(),
        None => letters,
    }
}

/// The usual English names of countries, and of regions that conferences name as countries.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "Afghanistan", "Albania", "Algeria", "Andorra", "Angola", "Antigua and Barbuda", "Argentina", "Armenia", "Aruba",
    "Australia", "Austria", "Azerbaijan", "Bahamas", "Bahrain", "Bangladesh", "Barbados", "Belarus", "Belgium",
    "Belize", "Benin", "Bermuda", "Bhutan", "Bolivia", "Bosnia and Herzegovina", "Botswana", "Brazil", "Brunei",
    "Bulgaria", "Burkina Faso", "Burundi", "Cambodia", "Cameroon", "Canada", "Cape Verde", "Cayman Islands",
    "Central African Republic", "Chad", "Chile", "China", "Colombia", "Comoros", "Congo", "Costa Rica", "Croatia",
    "Cuba", "Curaçao", "Cyprus", "Czechia", "Democratic Republic of the Congo", "Denmark", "Djibouti", "Dominica",
    "Dominican Republic", "Ecuador", "Egypt", "El Salvador", "Equatorial Guinea", "Eritrea", "Estonia", "Eswatini",
    "Ethiopia", "Faroe Islands", "Fiji", "Finland", "France", "French Polynesia", "Gabon", "Gambia", "Georgia",
    "Germany", "Ghana", "Gibraltar", "Greece", "Greenland", "Grenada", "Guadeloupe", "Guam", "Guatemala", "Guinea",
    "Guinea-Bissau", "Guyana", "Haiti", "Honduras", "Hong Kong", "Hungary", "Iceland", "India", "Indonesia", "Iran",
    "Iraq", "Ireland", "Israel", "Italy", "Ivory Coast", "Jamaica", "Japan", "Jordan", "Kazakhstan", "Kenya",
    "Kiribati", "Kosovo", "Kuwait", "Kyrgyzstan", "Laos", "Latvia", "Lebanon", "Lesotho", "Liberia", "Libya",
    "Liechtenstein", "Lithuania", "Luxembourg", "Macau", "Madagascar", "Malawi", "Malaysia", "Maldives", "Mali",
    "Malta", "Marshall Islands", "Martinique", "Mauritania", "Mauritius", "Mexico", "Micronesia", "Moldova", "Monaco",
    "Mongolia", "Montenegro", "Morocco", "Mozambique", "Myanmar", "Namibia", "Nauru", "Nepal", "Netherlands",
    "New Caledonia", "New Zealand", "Nicaragua", "Niger", "Nigeria", "North Korea", "North Macedonia", "Norway",
    "Oman", "Pakistan", "Palau", "Palestine", "Panama", "Papua New Guinea", "Paraguay", "Peru", "Philippines",
    "Poland", "Portugal", "Puerto Rico", "Qatar", "Réunion", "Romania", "Russia", "Rwanda", "Saint Kitts and Nevis",
    "Saint Lucia", "Saint Vincent and the Grenadines", "Samoa", "San Marino", "São Tomé and Príncipe", "Saudi Arabia",
    "Senegal", "Serbia", "Seychelles", "Sierra Leone", "Singapore", "Slovakia", "Slovenia", "Solomon Islands",
    "Somalia", "South Africa", "South Korea", "South Sudan", "Spain", "Sri Lanka", "Sudan", "Suriname", "Sweden",
    "Switzerland", "Syria", "Taiwan", "Tajikistan", "Tanzania", "Thailand", "Timor-Leste", "Togo", "Tonga",
    "Trinidad and Tobago", "Tunisia", "Turkey", "Turkmenistan", "Tuvalu", "Uganda", "Ukraine", "United Arab Emirates",
    "United Kingdom", "United States", "Uruguay", "Uzbekistan", "Vanuatu", "Vatican City", "Venezuela", "Vietnam",
    "Yemen", "Zambia", "Zimbabwe",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
            ("Austria", "Australia", false),
            ("Niger", "Nigeria", false),
            ("North Korea", "South Korea", false),
            ("日本", "中国", false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(comparable(one) == comparable(other), expected, "{one:?} and {other:?}");
        }
    }

    #[test]
    fn aliases_are_in_their_comparable_form_and_stand_once() {
        let mut seen = BTreeSet::new();
        for name in ALIASES.iter().copied().flatten() {
            assert!(name.chars().all(|letter| letter.is_ascii_lowercase()), "{name}");
            assert!(seen.insert(name), "{name}");
        }
    }
}
