package notify

// ServiceHeld is a service that is off the shelf until somebody has looked at it; its subject is the slug.
const ServiceHeld Kind = "service_held"
