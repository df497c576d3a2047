//! An enum on the wire: the variant's name is the event type or the command's name, its fields are the data.

use serde::Serialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Result};
use serde_path_to_error::Segment;

/// The names of an enum's variants in their order, as serde has them. None for a type that is no enum.
pub(crate) fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // It stops with an error once it has seen the names; there is no value to be had.
    let _ = T::deserialize(Names(&mut names));
    names
}

/// The variant of this name with these data. An error says where it is: `defineCourse.courseId: …`.
pub(crate) fn decode<T: DeserializeOwned>(name: &str, data: &str) -> Result<T> {
    // To keep track of the place takes as long as all the rest: it is found out when it is asked for.
    T::deserialize(Variant { name, data }).or_else(|_| decode_tracked(name, data))
}

#[cold]
fn decode_tracked<T: DeserializeOwned>(name: &str, data: &str) -> Result<T> {
    serde_path_to_error::deserialize(Variant { name, data }).map_err(|error| {
        match error.path().iter().next() {
            Some(Segment::Enum { .. }) => Error::custom(format!("{}: {}", error.path(), error.inner())),
            // There is no variant of this name.
            _ => error.into_inner(),
        }
    })
}

/// The variant's name and its data.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<(String, String)> {
    // Serde writes a variant with data as `{"Name":data}`.
    let text = serde_json::to_string(value)?;
    text.strip_prefix("{\"")
        .and_then(|text| text.strip_suffix('}'))
        .and_then(|text| text.split_once("\":"))
        .map(|(name, data)| (name.to_owned(), data.to_owned()))
        .ok_or_else(|| Error::custom(NO_FIELDS))
}

const NO_FIELDS: &str = "a variant of an event or command has named fields, or one struct";

macro_rules! no_other_than_enums {
    () => {
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value> {
            Err(Error::custom("events and commands are enums"))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    };
}

struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value> {
        *self.0 = variants;
        Err(Error::custom("names only"))
    }

    no_other_than_enums!();
}

struct Variant<'de> {
    name: &'de str,
    data: &'de str,
}

impl<'de> Deserializer<'de> for Variant<'de> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(self)
    }

    no_other_than_enums!();
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value> {
        // As a map, because serde_json takes an array for a struct too.
        self.read(|data| data.deserialize_map(visitor))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        self.read(|data| seed.deserialize(data))
    }

    fn unit_variant(self) -> Result<()> {
        Err(Error::custom(NO_FIELDS))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value> {
        Err(Error::custom(NO_FIELDS))
    }
}

type Reader<'de> = serde_json::Deserializer<serde_json::de::StrRead<'de>>;

impl<'de> Variant<'de> {
    fn read<T>(self, read: impl FnOnce(&mut Reader<'de>) -> Result<T>) -> Result<T> {
        let mut data = Reader::from_str(self.data);
        let value = read(&mut data)?;
        data.end()?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all_fields = "camelCase", deny_unknown_fields)]
    enum Seat {
        SeatsHeld { show_id: String, seats: Vec<Place> },
        PlaceSold(Place),
        Closed,
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Place {
        row: u8,
    }

    fn error(data: &str) -> String {
        decode::<Seat>("SeatsHeld", data).unwrap_err().to_string()
    }

    #[test]
    fn names_are_those_of_serde() {
        assert_eq!(names::<Seat>(), ["SeatsHeld", "PlaceSold", "Closed"]);
        assert!(names::<Place>().is_empty());
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let held = Seat::SeatsHeld { show_id: "a\"}:{".into(), seats: vec![Place { row: 3 }] };
        let (name, data) = encode(&held).unwrap();
        assert_eq!((&*name, &*data), ("SeatsHeld", r#"{"showId":"a\"}:{","seats":[{"row":3}]}"#));
        assert_eq!(decode::<Seat>(&name, &data).unwrap(), held);

        let sold = Seat::PlaceSold(Place { row: 3 });
        let (name, data) = encode(&sold).unwrap();
        assert_eq!((&*name, &*data), ("PlaceSold", r#"{"row":3}"#));
        assert_eq!(decode::<Seat>(&name, &data).unwrap(), sold);
    }

    #[test]
    fn errors_say_where() {
        for (data, expected) in [
            (
                r#"{"showId":"s","seats":[{"row":1},{"row":"x"}]}"#,
                "SeatsHeld.seats[1].row: invalid type: string \"x\", expected u8 at line 1 column 43",
            ),
            (r#"{"showId":"s"}"#, "SeatsHeld: missing field `seats` at line 1 column 14"),
            (
                r#"{"showId":"s","row":1}"#,
                "SeatsHeld.row: unknown field `row`, expected `showId` or `seats` at line 1 column 19",
            ),
            (
                r#"["s",[]]"#,
                "SeatsHeld: invalid type: sequence, expected struct variant Seat::SeatsHeld at line 1 column 0",
            ),
            (r#"{"showId":"s","seats":[]} 1"#, "SeatsHeld: trailing characters at line 1 column 27"),
        ] {
            assert_eq!(error(data), expected, "{data}");
        }
        assert_eq!(
            decode::<Seat>("PlaceLost", "{}").unwrap_err().to_string(),
            "unknown variant `PlaceLost`, expected one of `SeatsHeld`, `PlaceSold`, `Closed`"
        );
    }

    #[test]
    fn a_variant_without_data_is_none_of_ours() {
        assert_eq!(encode(&Seat::Closed).unwrap_err().to_string(), NO_FIELDS);
        assert_eq!(decode::<Seat>("Closed", "{}").unwrap_err().to_string(), format!("Closed: {NO_FIELDS}"));
    }
}
