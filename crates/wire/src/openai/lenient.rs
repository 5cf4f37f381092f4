//! Values as engines really write them: null, missing and of another kind all count as absent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::few::Few;
/// Visitor methods for kinds of values that count as absent.
macro_rules! absent {
    ($value:expr; $($kind:ident),*) => { $(absent!(@ $kind $value);)* };
    (@ bool $value:expr) => { fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> { Ok($value) } };
    (@ number $value:expr) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> { Ok($value) }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> { Ok($value) }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> { Ok($value) }
    };
    (@ text $value:expr) => { fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> { Ok($value) } };
    (@ null $value:expr) => { fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok($value) } };
    (@ list $value:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
    (@ map $value:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}

macro_rules! expecting {
    ($what:literal) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str($what)
        }
    };
}

/// A string, borrowed where JSON allows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// The text, where there is one that is not empty.
    pub(super) fn filled(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            expecting!("a string");
            absent!(Text(None); bool, number, null, list, map);
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A count: a number that is whole and not negative, be it written `12` or `12.0`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl<'de> Visitor<'de> for CountVisitor {
            type Value = Count;
            expecting!("a count");
            absent!(Count(None); bool, text, null, list, map);
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Count(Some(number)))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Count(u64::try_from(number).ok()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                // 2^53: beyond it a double is no exact count.
                let whole = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
                Ok(Count(whole.then_some(number as u64)))
            }
        }
        deserializer.deserialize_any(CountVisitor)
    }
}

/// A finite number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Real(pub(super) Option<f64>);

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RealVisitor;
        impl<'de> Visitor<'de> for RealVisitor {
            type Value = Real;
            expecting!("a number");
            absent!(Real(None); bool, text, null, list, map);
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Real(Some(number as f64)))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Real(Some(number as f64)))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Real(number.is_finite().then_some(number)))
            }
        }
        deserializer.deserialize_any(RealVisitor)
    }
}

/// The length of a list, whose elements are not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Length(pub(super) Option<u32>);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LengthVisitor;
        impl<'de> Visitor<'de> for LengthVisitor {
            type Value = Length;
            expecting!("a list");
            absent!(Length(None); bool, number, text, null, map);
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut length = 0_u32;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    length = length.saturating_add(1);
                }
                Ok(Length(Some(length)))
            }
        }
        deserializer.deserialize_any(LengthVisitor)
    }
}

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            expecting!("an object");
            absent!(Object(None); bool, number, text, null, list);
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| Object(Some(object)))
            }
        }
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

/// A list of objects; elements of another kind are left out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Objects<T>(pub(super) Few<T>);

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self(Few::default())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Objects<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectsVisitor<T> {
            type Value = Objects<T>;
            expecting!("a list of objects");
            absent!(Objects(Few::default()); bool, number, text, null, map);
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut objects = Few::default();
                while let Some(Object(element)) = list.next_element::<Object<T>>()? {
                    objects.extend(element);
                }
                Ok(Objects(objects))
            }
        }
        deserializer.deserialize_any(ObjectsVisitor(PhantomData))
    }
}

/// A text, or an object (an error, a finish reason), or a list of objects (content parts).
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Mixed<'a, T> {
    #[default]
    Absent,
    Text(Cow<'a, str>),
    Object(T),
    List(Vec<T>),
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Mixed<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MixedVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MixedVisitor<T> {
            type Value = Mixed<'de, T>;
            expecting!("a string, an object or a list");
            absent!(Mixed::Absent; bool, number, null);
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Mixed::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Mixed::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Mixed::Object)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut objects = Vec::new();
                while let Some(Object(element)) = list.next_element::<Object<T>>()? {
                    objects.extend(element);
                }
                Ok(Mixed::List(objects))
            }
        }
        deserializer.deserialize_any(MixedVisitor(PhantomData))
    }
}
