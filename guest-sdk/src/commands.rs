/// Declares the commands that a handler handles.
///
/// A variant's name with its first letter in lower case is the command's name, its fields in camelCase
/// are the command's data. Data that have another form, or a field that the command does not know, are
/// refused with the code `invalid-command` and a message that says what is wrong and where. An
/// [`Id`](crate::Id) checks more than a `String`.
///
/// ```
/// use weir_guest::{Id, commands};
///
/// commands! {
///     pub enum Command {
///         /// `defineCourse {"courseId": "c1", "capacity": 10}`
///         DefineCourse { course_id: Id, capacity: u32 },
///     }
/// }
/// ```
///
/// Attributes of serde can be given to variants and fields.
#[macro_export]
macro_rules! commands {
    (
        $(#[$meta:meta])*
        $vis:vis enum $commands:ident {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident { $( $(#[$field_meta:meta])* $field:ident : $type:ty ),* $(,)? }
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Debug, PartialEq, $crate::serde::Serialize, $crate::serde::Deserialize,
        )]
        #[serde(
            crate = "weir_guest::serde",
            rename_all = "camelCase",
            rename_all_fields = "camelCase",
            deny_unknown_fields
        )]
        #[allow(clippy::enum_variant_names, reason = "commands to one thing are often named after it")]
        $vis enum $commands {
            $( $(#[$variant_meta])* $variant { $( $(#[$field_meta])* $field: $type ),* } ),+
        }
    };
}
