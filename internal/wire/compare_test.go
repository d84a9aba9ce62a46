package wire

import (
	"testing"

	"pgregory.net/rapid"
)

func parsed(t testing.TB, document string) Value {
	t.Helper()
	v, err := Parse([]byte(document))
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return v
}

func TestContains_TakesMoreAndNeverLess(t *testing.T) {
	t.Parallel()
	const part = `{"a":1,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":true}`
	tests := map[string]struct {
		whole string
		want  bool
	}{
		"the same":                       {part, true},
		"another order":                  {`{"f":true,"b":{"e":"Погода 🌦","c":[1,{"d":null}]},"a":1}`, true},
		"another spelling of a text":     {`{"a":1,"b":{"c":[1,{"d":null}],"e":"\u041fогода \ud83c\udf26"},"f":true}`, true},
		"a member more":                  {`{"x":0,"a":1,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":true}`, true},
		"a member more, deeper":          {`{"a":1,"b":{"x":0,"c":[1,{"d":null}],"e":"Погода 🌦"},"f":true}`, true},
		"a member more in a list's item": {`{"a":1,"b":{"c":[1,{"d":null,"x":0}],"e":"Погода 🌦"},"f":true}`, false},
		"an item more":                   {`{"a":1,"b":{"c":[1,{"d":null},2],"e":"Погода 🌦"},"f":true}`, false},
		"items in another order":         {`{"a":1,"b":{"c":[{"d":null},1],"e":"Погода 🌦"},"f":true}`, false},
		"a member less":                  {`{"a":1,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"}}`, false},
		"a member less, deeper":          {`{"a":1,"b":{"c":[1,{"d":null}]},"f":true}`, false},
		"a null less":                    {`{"a":1,"b":{"c":[1,{}],"e":"Погода 🌦"},"f":true}`, false},
		"another text":                   {`{"a":1,"b":{"c":[1,{"d":null}],"e":"погода 🌦"},"f":true}`, false},
		"another bool":                   {`{"a":1,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":false}`, false},
		"another number":                 {`{"a":2,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":true}`, false},
		"a number as text":               {`{"a":"1","b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":true}`, false},
		"a bool as text":                 {`{"a":1,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":"true"}`, false},
		"null for a member":              {`{"a":null,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":true}`, false},
		"a list for an object":           {`{"a":1,"b":[],"f":true}`, false},
		"a name in another case":         {`{"A":1,"b":{"c":[1,{"d":null}],"e":"Погода 🌦"},"f":true}`, false},
		"nothing":                        {`{}`, false},
		"no object":                      {`[1]`, false},
	}
	for name, test := range tests {
		if got := parsed(t, test.whole).Contains(parsed(t, part)); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if (Value{}).Contains(parsed(t, part)) || !parsed(t, part).Contains(parsed(t, "{}")) {
		t.Error("what is not there contains nothing, and every object contains the empty one")
	}
}

func TestEqual_ComparesNumbersAsTheirReadersDo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b string
		want bool
	}{
		{"60", "60.0", true},
		{"60", "6e1", true},
		{"1.50", "1.5", true},
		{"0", "-0", true},
		{"12345678901234567890", "12345678901234567000", true}, // as it comes back from a client in JavaScript
		{"1", "2", false},
		{"1", "1.0000001", false},
		{"1e400", "1e400", true},
		{"1e400", "1e401", false},
		{"1e400", "1", false},
	}
	for _, test := range tests {
		if got := parsed(t, test.a).Equal(parsed(t, test.b)); got != test.want {
			t.Errorf("%s and %s: %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

func TestContains_HoldsOfWhatWasAdded(t *testing.T) {
	t.Parallel()
	leaf := rapid.OneOf(rapid.Just(Value{Kind: Null}), rapid.Just(Value{Kind: Bool, Text: "true"}), rapid.Just(Value{Kind: Number, Text: "1"}),
		rapid.Map(rapid.StringN(0, 3, 12), func(s string) Value { return Value{Kind: String, Text: s} }))
	var value func(depth int) *rapid.Generator[Value]
	value = func(depth int) *rapid.Generator[Value] {
		if depth == 0 {
			return leaf
		}
		object := rapid.Map(rapid.MapOfN(rapid.StringN(0, 2, 8), rapid.Deferred(func() *rapid.Generator[Value] { return value(depth - 1) }), 0, 3),
			func(m map[string]Value) Value { return Value{Kind: Object, Members: m} })
		return rapid.OneOf(leaf, object)
	}
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(rapid.StringN(0, 2, 8), value(2), 1, 4).Draw(t, "members")
		part := Value{Kind: Object, Members: members}
		whole := Value{Kind: Object, Members: map[string]Value{"added by the client": {Kind: Null}}}
		for name, member := range members {
			whole.Members[name] = member
		}
		if !whole.Contains(part) || !part.Equal(part) || part.Equal(whole) || part.Contains(whole) {
			t.Fatalf("%+v", members)
		}
	})
}
