package notify

const (
	// ServiceHeld is a service that is off the shelf until somebody has looked at it; its subject is the slug.
	ServiceHeld Kind = "service_held"
	// HoldingStopped is that so many services would be held at once that none is. It has no subject.
	HoldingStopped Kind = "holding_stopped"
)
