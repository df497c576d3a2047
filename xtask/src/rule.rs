//! What a check holds against the log: its rules, and where they were broken.

/// How many of a rule's broken cases are shown.
const SHOWN_CASES: usize = 3;

/// A rule, and every case in which it was broken.
pub(crate) struct Rule {
    pub(crate) text: &'static str,
    pub(crate) broken: Vec<String>,
}

impl Rule {
    /// For people: the rule, ticked or crossed, and some of the cases.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} {}", if self.broken.is_empty() { "✓" } else { "✗" }, self.text)];
        lines.extend(self.broken.iter().take(SHOWN_CASES).map(|case| format!("    {case}")));
        if self.broken.len() > SHOWN_CASES {
            lines.push(format!("    … {} cases in all", self.broken.len()));
        }
        lines
    }
}
