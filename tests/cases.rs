//! Tables of cases.

/// An array of tuples, one row a line. Commas separate the cells of a row, semicolons the rows.
macro_rules! cases {
    ($($($cell:expr),+);+ $(;)?) => {
        [$(($($cell),+)),+]
    };
}

/// An array of texts, many on a line.
macro_rules! words {
    ($($text:literal)+) => {
        [$($text),+]
    };
}

/// A table of inputs and outcomes, one outcome a line: each text before an arrow is a row `(text, outcome)`.
macro_rules! outcomes {
    ($($($text:literal)+ => $outcome:expr);+ $(;)?) => {
        [$($(($text, $outcome)),+),+]
    };
}
