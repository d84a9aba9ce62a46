package source

// An Observer counts what becomes of requests to sources, where it happens. It is called on the way of a paid call, so it must not block, ask anybody or
// fail. The names that it gets come from configuration, so there are few.
type Observer interface {
	// Reserved is one reservation. why is zero where it was granted, and otherwise says what stood against it.
	Reserved(source string, class Class, why Why)
	// Reported is what came of one request that was sent.
	Reported(source string, verdict Verdict)
}
