package server

// The forms of a provider's pages. The members are those of the API: a test compares them with its description.
var (
	slugField = formField{Path: []string{"slug"}, Label: "Short name in addresses", Control: oneLine, Asked: true, Fixed: true,
		Hint: "Lower-case letters, digits and hyphens. It cannot be changed: callers' links and payments name it."}

	serviceFields = []formField{
		slugField,
		{Path: []string{"name"}, Label: "Name", Control: oneLine, Asked: true, Hint: "At most 80 characters."},
		{Path: []string{"description"}, Label: "What it does", Control: manyLines, Hint: "At most 500 characters, in the catalog and on its page."},
		{Path: []string{"tags"}, Label: "Tags", Control: commaList, Hint: "Up to 5, with commas between, such as data, weather."},
		{Path: []string{"base_url"}, Label: "Base URL", Control: oneLine, Asked: true, Hint: "Where your service runs: https, at a public address. Paths of endpoints come after it. Callers see the host."},
	}
	probeFields = []formField{
		{Path: []string{"probe", "method"}, Label: "Method of the probe", Control: oneOf, Options: []string{"GET", "HEAD", "OPTIONS", "POST"}},
		{Path: []string{"probe", "path"}, Label: "Path of the probe", Control: oneLine, Asked: true, Hint: "It is asked every few seconds while callers want the service, and must change nothing."},
		{Path: []string{"probe", "statuses"}, Label: "Statuses that mean it lives", Control: commaList, Asked: true, Hint: "Such as 200-299, 401."},
		{Path: []string{"probe", "body"}, Label: "Body of the probe (JSON)", Control: jsonText, Hint: "For POST alone. May be left empty."},
	}
	besideServiceFields = []formField{
		{Path: []string{"capacity", "requests_per_second"}, Label: "Calls a second that it can take", Control: wholeNumber, Hint: "Empty: no limit is declared. Calls above it are refused before anybody pays."},
		{Path: []string{"capacity", "concurrency"}, Label: "Calls at the same time", Control: wholeNumber, Hint: "Empty: no limit is declared."},
		{Path: []string{"notices", "email"}, Label: "Mail address for notices", Control: oneLine, Hint: "You are told of strikes and of where your service goes. Only you and the operator see it."},
		{Path: []string{"notices", "webhook"}, Label: "Webhook for notices", Control: oneLine, Hint: "https, at a public address. The secret that signs for it is shown once, when it is made."},
	}

	routeFields = []formField{
		{Path: []string{"method"}, Label: "Method", Control: oneOf, Options: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, Asked: true, Fixed: true},
		{Path: []string{"path"}, Label: "Path", Control: oneLine, Asked: true, Fixed: true, Hint: "Such as /v1/city/{city}. Method and path cannot be changed: callers paid for them."},
	}
	endpointFields = []formField{
		{Path: []string{"price_usd"}, Label: "Price of a call, USD", Control: oneLine, Asked: true, Hint: "Such as 0.002. A price before stays good for quotes that were given."},
		{Path: []string{"description"}, Label: "What it does", Control: manyLines, Hint: "At most 500 characters."},
		{Path: []string{"trial_calls_per_day"}, Label: "Trial calls a day", Control: wholeNumber, Hint: "Free calls, for all callers together. Empty: none."},
		{Path: []string{"trial_calls_per_caller"}, Label: "Trial calls a day for one caller", Control: wholeNumber, Hint: "Empty: as many as there are."},
		{Path: []string{"input_example"}, Label: "Example input (JSON)", Control: jsonText, Hint: "The body, or the query and path parameters as an object of texts."},
		{Path: []string{"output_example"}, Label: "Example answer (JSON)", Control: jsonText},
	}
	finerFields = []formField{
		{Path: []string{"input_schema"}, Label: "Schema of the input (JSON Schema)", Control: jsonText, Hint: "What does not fit is refused before anybody pays. The example has to fit."},
		{Path: []string{"output_schema"}, Label: "Schema of the answer (JSON Schema)", Control: jsonText, Hint: "A promise: an answer that does not fit is refunded, and counts against you."},
		{Path: []string{"mime_type"}, Label: "Type of the answer", Control: oneLine, Hint: "Empty: application/json, or text/event-stream of a stream."},
		{Path: []string{"served_statuses"}, Label: "Also served, and paid", Control: tickedOf, Options: []string{"404", "409", "410"}, Hint: "2xx always is. Tick what is a result that callers pay for."},
		{Path: []string{"timeout_ms"}, Label: "Time for the whole answer, ms", Control: wholeNumber, Hint: "Empty: 10 s, or 5 minutes of a stream."},
		{Path: []string{"max_response_bytes"}, Label: "Longest answer, bytes", Control: wholeNumber, Hint: "Empty: 1 MiB, or 64 MiB of a stream."},
		{Path: []string{"stream"}, Label: "The answer is a stream", Control: yesOrNo, Hint: "It is passed on while it is made, and not kept."},
		{Path: []string{"idle_timeout_ms"}, Label: "Longest pause of a stream, ms", Control: wholeNumber, Hint: "Of streams alone. Empty: 30 s."},
	}
)

// The parts of a listing's form, in their order.
func serviceSets() []*fieldSet {
	return []*fieldSet{
		{Title: "The service", Fields: serviceFields},
		{Title: "How we see that it lives", Hint: "A service that does not pass its probe is not sold. That is no strike.", Fields: probeFields},
		{Title: "Limits and notices", Hint: "All of this may stay empty.", Fields: besideServiceFields},
	}
}

// endpointSets are the parts of an endpoint's form. at is where it lies in the document that it is sent in.
func endpointSets(prefix, at string) []*fieldSet {
	return []*fieldSet{
		{Title: "What is sold", Prefix: prefix, At: at, Fields: append(append([]formField{}, routeFields...), endpointFields...)},
		{Title: "Promises and limits", Hint: "All of this may stay empty.", Prefix: prefix, At: at, Fields: finerFields},
	}
}
