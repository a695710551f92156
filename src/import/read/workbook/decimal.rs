//! Decimal numbers with the precision of spreadsheets.

/// The number of significant digits in spreadsheets.
const DIGITS: usize = 15;

/// A non-negative number: `0.digits` times ten to the power of `point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// Values from 0 to 9, without trailing zeros. Empty for zero.
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// Converts the absolute value of `number`, rounded to 15 digits.
    pub fn new(number: f64) -> Decimal {
        let text = format!("{:.*e}", DIGITS - 1, number.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        let mut decimal = Decimal { digits, point: exponent.parse::<i64>().unwrap_or(0) + 1 };
        decimal.trim();
        decimal
    }

    fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    /// Multiplies by a power of ten.
    pub fn shift(&mut self, power: i64) {
        if !self.digits.is_empty() {
            self.point += power;
        }
    }

    /// Returns the number of significant digits.
    pub fn len(&self) -> usize {
        self.digits.len()
    }

    /// Rounds half up to `decimals` digits after the point. Returns true if that changed the number.
    pub fn round(&mut self, decimals: usize) -> bool {
        let kept = self.point + i64::try_from(decimals).unwrap_or(i64::MAX / 2);
        let Ok(kept) = usize::try_from(kept) else {
            let was_zero = self.digits.is_empty();
            self.digits.clear();
            self.trim();
            return !was_zero;
        };
        if self.digits.len() <= kept {
            return false;
        }
        let is_up = self.digits[kept] >= 5;
        self.digits.truncate(kept);
        if is_up {
            match self.digits.iter().rposition(|digit| *digit < 9) {
                Some(at) => {
                    self.digits.truncate(at + 1);
                    self.digits[at] += 1;
                }
                None => {
                    self.digits = vec![1];
                    self.point += 1;
                }
            }
        }
        self.trim();
        true
    }

    /// Returns the digits before the point, without leading zeros, and those after it, without trailing zeros.
    pub fn parts(&self) -> (String, String) {
        let digit = |at: i64| {
            let digit = usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0);
            char::from(b'0' + digit)
        };
        let end = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        ((0..self.point).map(digit).collect(), (self.point..end).map(digit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_in_spreadsheets() {
        let cases = [
            (2.5, 0, "3.", true),
            (3.0, 0, "3.", false),
            (0.1 + 0.2, 1, "0.3", false),
            (1.005, 2, "1.01", true),
            (9.996, 2, "10.", true),
            (0.04, 1, "0.", true),
            (0.06, 1, "0.1", true),
            (0.0004, 1, "0.", true),
            (0.0, 0, "0.", false),
            (1_234.5, 2, "1234.5", false),
            (1e20, 0, "100000000000000000000.", false),
            (1e-7, 9, "0.0000001", false),
        ];
        for (number, decimals, expected, is_rounded) in cases {
            let mut decimal = Decimal::new(number);
            assert_eq!(decimal.round(decimals), is_rounded, "{number}");
            let (whole, fraction) = decimal.parts();
            let whole = if whole.is_empty() { "0" } else { &whole };
            assert_eq!(format!("{whole}.{fraction}"), expected, "{number}");
        }
    }
}
