use std::fmt;

/// What a call of this crate gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call itself is wrong: numbers that do not fill their shape, handles that do not belong
    /// together.
    Misuse,
    /// A value breaks a rule of posenc, or bytes are not what they should be.
    Refused,
    /// The module ran out of memory, or trapped. After a trap its memory may be in disorder: every
    /// later call fails with this kind, and what was made by it must be made again.
    Module,
}

/// The sentence of the library: where, the rule, what it got, and the cure.
///
/// ```
/// let posenc = posenc::Engine::load()?;
/// let geometry = posenc::Geometry { head_dim: 63, ..Default::default() };
/// let error = posenc.plan(&posenc::json!({"type": "rope"}), geometry).unwrap_err();
/// assert_eq!(error.kind(), posenc::ErrorKind::Refused);
/// assert!(error.to_string().contains("head_dim must be even, got 63"));
/// assert_eq!((error.rule(), error.got()), (Some("head_dim must be even"), Some("63")));
/// assert_eq!(error.cure(), Some("set rotary_dim or pad the head"));
/// # Ok::<(), posenc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    parts: Option<Box<[String; 4]>>, // where, rule, got, cure; of the library's sentences
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), parts: None }
    }
    pub(crate) fn with_parts(self, parts: [String; 4]) -> Self {
        Self { parts: Some(Box::new(parts)), ..self }
    }
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }
    pub(crate) fn module(why: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Module, format!("the WebAssembly module: {why}"))
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// The sentence, which [`Display`](fmt::Display) prints too.
    pub fn message(&self) -> &str {
        &self.message
    }
    /// The function, or the file's key. This and the parts below are of what the library refuses;
    /// nothing where it names none, and of a misuse that this crate finds by itself.
    pub fn place(&self) -> Option<&str> {
        self.part(0)
    }
    /// The rule that is broken.
    pub fn rule(&self) -> Option<&str> {
        self.part(1)
    }
    /// The value found.
    pub fn got(&self) -> Option<&str> {
        self.part(2)
    }
    /// What to do about it.
    pub fn cure(&self) -> Option<&str> {
        self.part(3)
    }

    fn part(&self, which: usize) -> Option<&str> {
        self.parts.as_ref().map(|parts| parts[which].as_str()).filter(|part| !part.is_empty())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

// The library's cures name the command's flags: what `Geometry` calls them. Of a whole sentence, or
// of the cure alone.
pub(crate) fn in_our_words(said: &str) -> String {
    let (before, cure) = match said.rfind("; set --") {
        Some(at) => said.split_at(at + "; ".len()),
        None => ("", said),
    };
    let cure = cure.replacen("set --grid HEIGHTxWIDTH", "set grid_height and grid_width", 1);
    let Some(flag) = cure.strip_prefix("set --") else { return format!("{before}{cure}") };
    let end = flag.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(flag.len());
    format!("{before}set {}{}", flag[..end].replace('-', "_"), &flag[end..])
}
