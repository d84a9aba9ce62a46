package capacity

import (
	"bytes"
	"crypto/sha256"

	"github.com/google/uuid"
)

// placesOf is the share that one replica has of a service's places. Over all members the shares sum to places; who is no member has none.
func placesOf(places int, service, self uuid.UUID, members []uuid.UUID) int {
	before, member := 0, false // members that come before self where single places are handed out
	own := weight(service, self)
	for _, m := range members {
		if m == self {
			member = true
			continue
		}
		other := weight(service, m)
		if order := bytes.Compare(other[:], own[:]); order > 0 || order == 0 && bytes.Compare(m[:], self[:]) > 0 {
			before++
		}
	}
	if !member {
		return 0
	}
	share := places / len(members)
	if before < places%len(members) {
		share++
	}
	return share
}

// weight orders replicas for a service, in another order for each.
func weight(service, replica uuid.UUID) [sha256.Size]byte {
	return sha256.Sum256(append(service[:], replica[:]...))
}
