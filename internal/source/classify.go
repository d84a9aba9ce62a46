package source

// Classify says what an answer means for its source.
func Classify(k Kind, r RunsOut, shapes []Shape, a Answer) Verdict { return Verdict{Kind: Troubled} }
