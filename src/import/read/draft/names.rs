//! The names of columns in public lists, and the fields that they probably contain.

use std::ptr;

use crate::import::read::row_kind::RowKind;
use crate::model::field::FieldTable;
use crate::model::fold::fold;

/// The fields of a name, joined by `+`, and the names in the form of [`plain`], the most exact first.
type Names = (&'static str, &'static str);

/// The names in lists of all kinds.
#[rustfmt::skip]
const SHARED: &[Names] = &[
    ("abbv", "abbreviation|abbr|abbrev|acronym|short name|short title|abbreviated title|abbreviated name|title abbreviation|name abbreviation|\
              abkurzung|kurztitel|kurzname|kurzform|sigle|sigla|siglas|acronimo|acronyme|akronym|skrot|lyhenne|forkortelse|abreviatura|\
              abbreviazione|略称|略語|简称|缩写|약칭"),
    ("url", "website|web site|website url|homepage|home page|official website|official site|web address|web page|webpage|url link|weblink|web link|web|\
             homepage url|landing page|more info|more information|further information|www|link|links|internet|internetseite|webseite|site web|sitio web|sito web|sito|pagina web|pagina|strona internetowa|strona www|hemsida|\
             verkkosivu|hjemmeside|enlace|lien|site|ウェブサイト|ホームページ|网址|官网|网站|홈페이지"),
    ("organizations", "organization|organisation|organisations|organizer|organiser|organizers|organisers|organized by|organised by|society|societies|\
             affiliated society|host society|host|hosts|hosted by|association|veranstalter|fachgesellschaft|gesellschaft|organisateur|organizador|\
             organizzatore|sociedad|societe|societa|organizator|主催|主办单位"),
];

#[rustfmt::skip]
const CONFERENCES: &[Names] = &[
    ("name", "full name|full title|name conference|name meeting|name event|name congress|congress name|congress title|annual meeting|item|title meeting|title event|conference name|conference title|event name|event title|meeting name|meeting title|conference|congress|event|meeting|\
              title|display name|summary|symposium|kongress|konferenz|tagung|veranstaltung|congreso|congres|congresso|convegno|evento|evenement|manifestation|\
              reunion|konferencja|konferens|kokous|titel|titulo|titre|titolo|tytul|nombre|nom|nome|nazwa|naam|nimi|navn|namn|nazev|nazev akce|\
              大会名|学会名|会議名|会议名称|名称|행사명"),
    ("abbv", "series|short"),
    ("year", "edition year|edition|jahr|annee|ano|anno|rok|vuosi|ar|開催年|年度|年"),
    ("start_date", "start|starts|begin|begins|beginning|begin date|start day|start time|date start|date begin|date from|from date|from|first day|dtstart|\
              conf start|startdatum|beginn|anfang|von|datum von|debut|date debut|inicio|fecha inicio|data inicio|inizio|data inizio|data rozpoczecia|od|alku|\
              開始日|开始日期|시작일|month|monat|mois|mes"),
    ("end_date", "end|ends|finish|end day|end time|date end|date finish|date to|to date|to|until|last day|dtend|conf end|enddatum|einddatum|ende|bis|\
              datum bis|fin|date fin|fecha fin|fim|data fim|fine|data fine|data zakonczenia|do|loppu|終了日|结束日期|종료일"),
    ("start_date+end_date", "dates|date|date range|date meeting|dates meeting|date event|date conference|when|datum|termin|termine|zeitraum|fecha|fechas|data|periodo|period|periode|czas|ajankohta|dato|time|zeit|day|days|\
              会期|日程|開催日|会议时间|时间|日期|일정"),
    ("abstract_due_date", "abstract deadline|abstract submission deadline|abstract submission due|abstract submission|abstracts due|abstract due|\
              deadline abstracts|deadline abstract submission|deadline abstract|abstract submission end|abstract end|abstract close|abstract|abstracts|\
              submission deadline|submission due|submission due date|submissions due|submission end|submission|deadline submission|call abstracts deadline|\
              call abstracts|call papers deadline|cfp deadline|cfp end date|cfp end|cfp due|cfp due date|deadline|due date|due|abstractfrist|abstract frist|\
              einreichfrist|einreichungsfrist|abstract einreichung|date limite|date limite soumission|fecha limite|fecha limite resumenes|plazo|\
              scadenza abstract|scadenza|prazo|termin nadsylania|termin zgloszen|演題締切|抄録締切|截稿日期|投稿截止"),
    ("late_breaking_due_date", "late breaking deadline|late breaking abstract deadline|late breaking abstracts deadline|late breaking abstract submission|\
              late breaking abstract|late breaking abstracts|late breaking due|late breaking|late breaker deadline|late breakers|late breaker|\
              lba deadline|lba due|lba"),
    ("start_date_status", "start status|date status|dates status"),
    ("abstract_due_date_status", "abstract status|abstract deadline status|deadline status"),
    ("country", "host country|country name|location country|venue country|address country|nation|country code|land|staat|pays|pais|paese|kraj|maa|国名|開催国|国家|国|국가"),
    ("city", "host city|city name|town|location city|venue city|address locality|stadt|ville|ciudad|citta|cidade|miasto|kaupunki|by|stad|都市|開催都市|城市|도시|conf city"),
    ("city+country", "location|place|where|city state|city country|city and country|conf loc|loc|ort|tagungsort|veranstaltungsort|lieu|lugar|luogo|local|localizacion|\
              miejsce|plaats|plats|paikka|sted|sede|misto|misto konani|開催地|地点|会议地点|장소"),
    ("venue", "venue name|location name|conference venue|congress center|congress centre|convention center|hotel|veranstaltungsstatte|会場|会场"),
    ("url", "cfp link|cfp url"),
    ("therapy_areas", "therapy area|therapeutic area|therapeutic areas|specialty|specialties|speciality|specialities|medical specialty|topic|topics|subject|\
              subjects|field|fields|discipline|disciplines|area|areas|fachgebiet|fachgebiete|fachbereich|thema|themen|specialite|specialites|\
              especialidad|especialidades|specialita|dziedzina|分野|领域"),
    ("formats_oral", "oral|orals|oral presentation|oral presentations"),
    ("formats_poster", "poster|posters|poster presentation|poster presentations"),
    ("formats_e_poster", "e poster|e posters|eposter|eposters|electronic poster|electronic posters"),
    ("formats_encore", "encore|encores|encore abstracts"),
];

#[rustfmt::skip]
const JOURNALS: &[Names] = &[
    ("name", "full title|full name|display name|full journal title|title journal|name journal|journal title|journal name|journal|title|source title|publication title|publication name|serial title|\
              periodical|publication|zeitschrift|zeitschriftentitel|titel|original title|original tittel|titulo|titulo revista|nombre|titre|titre revue|\
              revue|revista|rivista|titolo|tytul|tytul czasopisma|czasopismo|nazwa|nazev|nazev casopisu|tidskrift|tidsskrift|lehti|lehden nimi|tijdschrift|nom|nome|\
              雑誌名|誌名|期刊名称|刊名|期刊|저널명|학술지명"),
    ("abbv", "jcr abbreviation|iso abbreviation|iso abbr|isoabbr|nlm ta|medline ta|nlm abbreviation|nlm title abbreviation|nlm title abbreviation ta|med abbr|medabbr|abbreviated journal title|abbr title"),
    ("issn_print", "print issn|issn print|pissn|p issn|issn p|issn printed|issn print version|issn imprimer|issn imprime|issn papier|issn impreso|issn impresso|\
              issn stampa|issn cartaceo|issn gedruckt|issn druck|issn druk|issn|issns|issn number|issn numbers|issn no|issn nr|issns issn"),
    ("issn_online", "online issn|issn online|eissn|e issn|issn e|issn online version|eissn online version|electronic issn|issn electronic|issn web|issn internet|issn digital|\
              issn elektronisch|issn en ligne|issn electronique|issn electronico|issn eletronico|issn en linea|issn elettronico|issn elektroniczny"),
    ("publisher", "publisher name|host organization name|publishing house|publishing company|verlag|editorial|editeur|editore|editora|wydawca|wydawnictwo|kustantaja|julkaisija|\
              vydavatel|nakladatel|forlag|utgiver|udgiver|utgivare|uitgever|出版社|出版者|발행처"),
    ("impact_factor", "jif|impact factor|journal impact factor|jcr impact factor|if|jcr if|impactfactor|impaktfaktor|impact faktor|impakt faktor|\
              facteur impact|factor impacto|fator impacto|fattore impatto|wskaznik impact factor|インパクトファクター|影响因子|影響因子"),
    ("impact_factor_year", "jcr year|jif year|if year|impact factor year|year jif"),
    ("citescore", "cite score"),
    ("sjr", "sjr score|sjr index|sjr indicator|scimago journal rank|sjr value"),
    ("h_index", "h index|hindex|h indeks|indice h"),
    ("publishing_access", "oa status|open access status|open access model|oa model|publishing model|publication model|access model|business model|access type|\
              journal type|oa type|open access type|access|model|open access|oa|is oa|zugang|acces|acceso"),
    ("publishing_content_license", "license|licence|cc license|cc licence|license type|licence type|licenses|creative commons license|\
              lizenz|licencia|licenza|licencja"),
    ("publishing_apc_usd", "apc usd|usd apc|apc in usd|apc us|apc amount usd|apc price usd|apc list price usd|list price usd|price usd|usd price|fee usd|usd|\
              article processing charge usd|article processing charge|article processing charges|article publishing charge|article publication charge|article publication charge usd|apc list|apc|apcs|apc amount|\
              apc price|apc list price|apc fee|publication fee|open access fee|oa fee"),
    ("publishing_embargo_months", "embargo months|embargo month|embargo in months|embargo|embargo period|embargofrist"),
];

#[rustfmt::skip]
const ORGANIZATIONS: &[Names] = &[
    ("name", "full name|organization name|organisation name|society name|association name|organization|organisation|society|association|institution|company|\
              title|verband|gesellschaft|fachgesellschaft|verein|bezeichnung|sociedad|societe|societa|sociedade|stowarzyszenie|nombre|nom|nome|nazwa|namn|\
              正式名称|学会名|団体名|名称"),
    ("type", "kind|organization type|organisation type|category|kategorie|legal form|法人格"),
];

const TAGS: &[Names] = &[
    ("name", "tag|tag name|label"),
    ("type", "tag type|kind"),
    ("category", "group"),
];

/// Names of prices that say nothing about their currency. They count next to a column with the currency.
const PRICES: &[Names] = &[(
    "publishing_apc_usd",
    "price|list price|amount|fee|charge|preis|listenpreis|prix|precio|preco|prezzo|cena",
)];

/// Words before a name that add nothing to it, such as in `conference dates`.
const NOUNS: &[&str] = &[
    "conference",
    "conf",
    "event",
    "meeting",
    "congress",
    "journal",
    "kongress",
    "tagung",
    "properties",
    "attributes",
    "fields",
    "node",
    "acf",
    "bibjson",
    "confs",
    "conferences",
    "congresses",
    "events",
    "meetings",
    "editions",
    "timeline",
];

/// Words of a header above others, such as `When` above `From` and `To`.
const GROUPS: &[&str] = &[
    "when",
    "where",
    "date",
    "dates",
    "deadline",
    "deadlines",
    "place",
    "location",
    "venue",
    "address",
    "metrics",
    "summary",
    "stats",
    "identifiers",
    "apc",
    "fees",
];

/// Words without a meaning.
const FILLERS: &[&str] = &[
    "the", "of", "de", "del", "della", "der", "des", "du", "la", "le", "el", "d", "l", "di", "do",
    "da", "for",
];

/// Returns the words of a header in lower case, without accents and punctuation. `cfpEndDate` has three words, and
/// `Date(s)` has one.
fn words_of(header: &str) -> Vec<String> {
    let mut parted = String::new();
    let mut follows_lower = false;
    for letter in header.replace("(s)", "s").chars() {
        if letter.is_uppercase() && follows_lower {
            parted.push(' ');
        }
        follows_lower = letter.is_lowercase();
        parted.push(letter);
    }
    fold(&parted)
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn year_in(word: &str) -> Option<u16> {
    word.parse()
        .ok()
        .filter(|year| word.len() == 4 && (1900..=2100).contains(year))
}

/// Returns the latest year in a header.
pub(super) fn year_of(header: &str) -> Option<u16> {
    words_of(header)
        .iter()
        .filter_map(|word| year_in(word))
        .max()
}

/// Returns the words of a header without years and repetitions, and without the number in `Society 2` or `ISSN1`.
fn plain(header: &str) -> Vec<String> {
    let mut words = words_of(header);
    words.retain(|word| year_in(word).is_none());
    words.dedup();
    if let Some(last) = words.pop() {
        let name = last.trim_end_matches(|sign: char| sign.is_ascii_digit());
        let is_number = last.len() < name.len() + 3;
        words.extend(
            [if is_number { name.to_owned() } else { last }]
                .into_iter()
                .filter(|word| !word.is_empty()),
        );
    }
    words
}

/// The fields that a header names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownName {
    pub fields: Vec<&'static str>,
    /// 0 for the exact name of a field, and more for less exact names.
    pub rank: usize,
}

/// Returns the fields that a header names, if it is a known name of a column of this kind of rows.
pub(super) fn known_name(kind: RowKind, header: &str) -> Option<KnownName> {
    let words = plain(header);
    let own = match kind {
        RowKind::Conferences => CONFERENCES,
        RowKind::Journals => JOURNALS,
        RowKind::Organizations => ORGANIZATIONS,
        RowKind::Tags => TAGS,
    };
    exact_name(kind, &words)
        .or_else(|| name_in(kind, own, &words))
        .or_else(|| name_in(kind, SHARED, &words))
        .or_else(|| match &*words {
            // Results of SPARQL and of web sites: `placeLabel`, `place.value`, `title.rendered`.
            [rest @ .., last] if ["label", "value", "rendered"].contains(&last.as_str()) => {
                known_name(kind, &rest.join(" "))
            }
            [first, rest @ ..] if NOUNS.contains(&first.as_str()) && !rest.is_empty() => {
                known_name(kind, &rest.join(" "))
            }
            [first, rest @ ..] if GROUPS.contains(&first.as_str()) && !rest.is_empty() => {
                known_name(kind, &rest.join(" "))
                    .filter(|known| !["name", "url"].contains(&known.fields[0]))
            }
            _ => None,
        })
}

/// Returns true if a header is a known name of a column of rows with this table.
pub(in crate::import) fn is_known_name(table: &FieldTable, header: &str) -> bool {
    use RowKind::{Conferences, Journals, Organizations, Tags};
    let kinds = [Conferences, Journals, Organizations, Tags];
    let kind = kinds.into_iter().find(|kind| ptr::eq(kind.table(), table));
    kind.is_some_and(|kind| known_name(kind, header).is_some())
}

/// Returns the price that a header names, without its currency.
pub(super) fn price_name(header: &str) -> Option<KnownName> {
    name_in(RowKind::Journals, PRICES, &plain(header))
}

/// Returns the field whose column has exactly this name, also with a year, such as `SJR 2024`.
fn exact_name(kind: RowKind, words: &[String]) -> Option<KnownName> {
    let squeezed = words.concat();
    let mut fields = kind.table().fields.iter();
    let field = fields.find(|field| field.column.replace('_', "") == squeezed)?;
    Some(KnownName {
        fields: vec![&field.column],
        rank: 0,
    })
}

fn name_in(kind: RowKind, names: &'static [Names], words: &[String]) -> Option<KnownName> {
    let has = |name: &str| kind.table().fields.iter().any(|field| field.column == name);
    let whole = words.join(" ");
    let kept: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !FILLERS.contains(word))
        .collect();
    let brief = kept.join(" ");
    let rank_of = |names: &str, wanted: &str| names.split('|').position(|name| name == wanted);
    [whole, brief].iter().find_map(|wanted| {
        names.iter().find_map(|(fields, names)| {
            let rank = rank_of(names, wanted)?;
            let fields: Vec<&str> = fields.split('+').collect();
            fields.iter().all(|field| has(field)).then_some(KnownName {
                fields,
                rank: rank + 1,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_fields() {
        use RowKind::{Conferences, Journals, Organizations};
        let cases = [
            (Journals, "Journal name", "name"),
            (Journals, "Source Title", "name"),
            (Conferences, "Source Title", ""),
            (Journals, "journal_full_title", "name"),
            (Journals, "Título de la revista", "name"),
            (Journals, "2024 JIF", "impact_factor"),
            (Journals, "5-Year JIF", ""),
            (Journals, "JIF Quartile", ""),
            (Journals, "SJR 2024", "sjr"),
            (Journals, "SJR Best Quartile", ""),
            (Journals, "Facteur d'impact 2024", "impact_factor"),
            (Journals, "Journal ISSN (print version)", "issn_print"),
            (Journals, "Journal EISSN (online version)", "issn_online"),
            (Journals, "issn_electronic", "issn_online"),
            (Journals, "ISSN1", "issn_print"),
            (Journals, "title.title", "name"),
            (Journals, "NLM Title Abbreviation (TA)", "abbv"),
            (
                Journals,
                "Article publication charge USD",
                "publishing_apc_usd",
            ),
            (Conferences, "itemLabel", "name"),
            (Conferences, "title.rendered", "name"),
            (Conferences, "Name of congress", "name"),
            (Conferences, "Date(s)", "start_date+end_date"),
            (Conferences, "confs.timeline.deadline", "abstract_due_date"),
            (Conferences, "venue.country.name", "country"),
            (Conferences, "acf.start_date", "start_date"),
            (Conferences, "venue.url", ""),
            (Conferences, "Deadlines Abstracts", "abstract_due_date"),
            (Journals, "APC (USD)", "publishing_apc_usd"),
            (Journals, "APC (EUR)", ""),
            (Journals, "URL in DOAJ", ""),
            (Journals, "Journal type", "publishing_access"),
            (Journals, "date", ""),
            (Journals, "journalLabel.value", "name"),
            (Journals, "summary_stats.h_index", "h_index"),
            (Conferences, "properties.name", "name"),
            (Conferences, "location.address.addressLocality", "city"),
            (Conferences, "cfpEndDate", "abstract_due_date"),
            (Conferences, "conf_start", "start_date"),
            (Conferences, "conf_loc", "city+country"),
            (Conferences, "cfp_link", "url"),
            (Conferences, "submission_due", "abstract_due_date"),
            (Conferences, "Conference dates", "start_date+end_date"),
            (Conferences, "Date de début", "start_date"),
            (Conferences, "startDate", "start_date"),
            (Conferences, "Society 2", "organizations"),
            (Conferences, "Where City", "city"),
            (
                Conferences,
                "Deadlines Late-breaking",
                "late_breaking_due_date",
            ),
            (Conferences, "Place name", ""),
            (Conferences, "ISSN", ""),
            (Conferences, "Society name", ""),
            (Organizations, "Society name", "name"),
            (Organizations, "正式名称", "name"),
        ];
        for (kind, header, expected) in cases {
            let found =
                known_name(kind, header).map_or(String::new(), |known| known.fields.join("+"));
            assert_eq!(found, expected, "{kind} {header}");
        }
        assert_eq!(year_of("JIF 2023/2024"), Some(2024));
    }

    #[test]
    fn all_names_are_in_their_plain_form() {
        for (_, names) in [SHARED, CONFERENCES, JOURNALS, ORGANIZATIONS, TAGS, PRICES].concat() {
            for name in names.split('|') {
                assert_eq!(words_of(name).join(" "), name);
            }
        }
    }
}
