//! Properties of the table codec over random values of random messages and versions.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use pykafka_wire::plan::{Operation, Plan, Step};
use pykafka_wire::schema::{Kind, Message, Type, messages, request_of, response_of};
use pykafka_wire::value::{Tree, Value, Values};
use pykafka_wire::{ApiKey, codec};

use pykafka_wire::fuzz::{HOT, recode_hot};

fn primitive(kind: Type) -> BoxedStrategy<Value> {
    let within = |low, high| (low..=high).prop_map(Value::Int).boxed();
    match kind {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int8 => within(i8::MIN.into(), i8::MAX.into()),
        Type::Int16 => within(i16::MIN.into(), i16::MAX.into()),
        Type::Uint16 => within(0, u16::MAX.into()),
        Type::Int32 => within(i32::MIN.into(), i32::MAX.into()),
        Type::Uint32 => within(0, u32::MAX.into()),
        Type::Int64 => within(i64::MIN, i64::MAX),
        Type::Float64 => (-1e300..1e300).prop_map(Value::Float).boxed(),
        Type::Uuid => vec(any::<u8>(), 16).prop_map(Value::Bytes).boxed(),
        Type::String => "\\PC{0,12}".prop_map(Value::String).boxed(),
        Type::Bytes | Type::Records => vec(any::<u8>(), 0..200).prop_map(Value::Bytes).boxed(),
        Type::Of(_) => unreachable!("a plan keeps structs apart from primitives"),
    }
}

fn field(step: &'static Step) -> BoxedStrategy<Value> {
    let value = match &step.operation {
        Operation::One(kind) => primitive(*kind),
        Operation::Struct(plan) => structs(plan),
        Operation::List(kind) => vec(primitive(*kind), 0..4).prop_map(Value::List).boxed(),
        Operation::Structs(plan) => vec(structs(plan), 0..3).prop_map(Value::List).boxed(),
    };
    let default = Value::default_of(step.field);
    match step.nullable {
        true => prop_oneof![1 => Just(Value::Null), 4 => value].boxed(),
        false if default == Value::Null => value,
        false => prop_oneof![1 => Just(default), 4 => value].boxed(),
    }
}

/// Values that the version of the plan can carry.
fn structs(plan: &'static Plan) -> BoxedStrategy<Value> {
    let mut slots: Vec<BoxedStrategy<Value>> =
        plan.schema.fields.iter().map(|field| Just(Value::default_of(field)).boxed()).collect();
    for step in plan.plain.iter().chain(&plan.tagged) {
        slots[step.slot] = field(step);
    }
    slots.prop_map(Value::Struct).boxed()
}

fn any_message() -> impl Strategy<Value = (&'static Message, &'static Plan, Value)> {
    any_of(messages().to_vec())
}

fn any_hot_message() -> impl Strategy<Value = (&'static Message, &'static Plan, Value)> {
    let both = |key: &ApiKey| [request_of(*key).unwrap(), response_of(*key).unwrap()];
    any_of(HOT.iter().flat_map(both).collect())
}

fn any_of(
    messages: Vec<&'static Message>,
) -> impl Strategy<Value = (&'static Message, &'static Plan, Value)> {
    select(messages)
        .prop_flat_map(|message| (Just(message), message.versions.0..=message.versions.1))
        .prop_flat_map(|(message, version)| {
            let plan = message.plan(version).unwrap();
            (Just(message), Just(plan), structs(plan))
        })
}

fn encode(plan: &Plan, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    codec::encode(plan, value, &Tree::new(), &mut out).unwrap();
    out
}

proptest! {
    #[test]
    fn encoded_messages_round_trip_and_trailing_bytes_are_ignored(
        (message, plan, value) in any_message(),
        left_over in vec(any::<u8>(), 0..4),
    ) {
        let mut bytes = encode(plan, &value);
        bytes.extend(left_over);
        let read = codec::decode(plan, &bytes, &mut Values).unwrap();
        prop_assert_eq!(read, value, "{} {}", message.name, plan.version);
    }

    #[test]
    fn a_truncated_message_is_never_read((message, plan, value) in any_message(), cut in 0.0..1.0) {
        let bytes = encode(plan, &value);
        let end = (cut * bytes.len() as f64) as usize;
        if end < bytes.len() {
            let read = codec::decode(plan, &bytes[..end], &mut Values);
            prop_assert!(read.is_err(), "{} {}", message.name, plan.version);
        }
    }

    #[test]
    fn hot_messages_encode_the_same_bytes_as_the_tables((message, plan, value) in any_hot_message()) {
        let is_request = message.kind == Kind::Request;
        let bytes = encode(plan, &value).into();
        let key = ApiKey(message.api_key);
        let written = recode_hot(key, is_request, plan.version, &bytes).unwrap().unwrap();
        prop_assert_eq!(written, bytes, "{} {}", message.name, plan.version);
    }
}
