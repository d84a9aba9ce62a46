package payment

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"market/internal/wire"
)

// Advertised is what a challenge of ours says of its extensions: the info of each, by key.
type Advertised map[string]json.RawMessage

// Extensions returns what every challenge of ours advertises, whatever is sold.
func Extensions() Advertised { return Advertised{identifierKey: json.RawMessage(identifierInfo)} }

// dynamicMembers are the paths of those members of an advertised info that differ from one challenge to the next, so that nobody can be held to the
// last one.
var dynamicMembers = map[string][][]string{
	receiptKey: {{"offers"}}, // signed for one challenge
	// The examples, which the owner of a listing changes as it likes. What an endpoint is does not change: it is another one then.
	bazaarKey: {{"input", "body"}, {"input", "queryParams"}, {"input", "pathParams"}, {"output"}},
}

// checkEcho asks for the whole of our info in what the client echoes of it: a client may add to it, and may neither change nor drop a part.
// A client may also echo nothing, and send extensions that we know nothing of.
func (p Payload) checkEcho(advertised Advertised) error {
	for _, key := range slices.Sorted(maps.Keys(advertised)) {
		echo, ok := p.echoed[key]
		if !ok || echo.Kind == wire.Null {
			continue
		}
		ours, err := wire.Parse(advertised[key])
		if err != nil {
			return fmt.Errorf("read what is advertised of extension %s: %w", key, err)
		}
		for _, path := range dynamicMembers[key] {
			of, last := ours, len(path)-1
			for _, name := range path[:last] {
				of = of.Members[name]
			}
			delete(of.Members, path[last])
		}
		if !echo.Members["info"].Contains(ours) {
			return mismatch(CodeExtensionEcho, "extensions.%s.info must hold all that PAYMENT-REQUIRED has there, unchanged.", key)
		}
	}
	return nil
}
