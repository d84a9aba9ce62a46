package capacity

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func ids(n int) []uuid.UUID {
	all := make([]uuid.UUID, n)
	for i := range all {
		all[i] = uuid.Must(uuid.NewV7())
	}
	return all
}

func TestPlacesOf_SharesSumToWhatIsDeclaredAndDifferByOneAtMost(t *testing.T) {
	t.Parallel()
	id := rapid.Custom(func(t *rapid.T) (id uuid.UUID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		return id
	})
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfNDistinct(id, 1, 40, rapid.ID[uuid.UUID]).Draw(t, "members")
		places, service := rapid.IntRange(1, PlacesMax).Draw(t, "places"), id.Draw(t, "service")
		sum := 0
		for _, m := range members {
			share := placesOf(places, service, m, members)
			if low := places / len(members); share < low || share > low+1 {
				t.Fatalf("%d of %d places over %d replicas", share, places, len(members))
			}
			sum += share
		}
		if sum != places {
			t.Fatalf("the shares of %d replicas sum to %d, want %d", len(members), sum, places)
		}
	})
}

func TestPlacesOf_TheOrderInWhichReplicasAreReadDecidesNothing(t *testing.T) {
	t.Parallel()
	members, service := ids(5), uuid.New()
	turned := append(append([]uuid.UUID{}, members[2:]...), members[:2]...)
	for _, m := range members {
		if a, b := placesOf(7, service, m, members), placesOf(7, service, m, turned); a != b {
			t.Errorf("a share is %d and %d", a, b)
		}
	}
}

func TestPlacesOf_SinglePlacesOfManyServicesLieOnAllReplicas(t *testing.T) {
	t.Parallel()
	members := ids(4)
	const services = 400
	for i, m := range members {
		has := 0
		for range services {
			has += placesOf(1, uuid.New(), m, members)
		}
		if has < services/8 || has > services/2 {
			t.Errorf("replica %d has %d of %d single places, want about a quarter", i, has, services)
		}
	}
}

func TestPlacesOf_WhoIsNotAliveHasNone(t *testing.T) {
	t.Parallel()
	for _, members := range [][]uuid.UUID{nil, ids(1), ids(3)} {
		if got := placesOf(100, uuid.New(), uuid.New(), members); got != 0 {
			t.Errorf("among %d others it has %d places", len(members), got)
		}
	}
}
