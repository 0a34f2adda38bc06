package kubelet

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// ManagerOption is one of NewImagePullManager's.
type ManagerOption func(*ImagePullManager)

// CheckersOf says who checks the credentials of a pull: the registry, or by the configuration of the runtime
// (by the name that it says: containerd, cri-o) another host. It is read anew for each pull. What
// waybill.WhoChecks can't see, this can't. Without this option nobody is said to have checked.
func CheckersOf(runtimeName string) ManagerOption {
	return checkersOf(waybill.WhoChecks{Runtime: runtimeName})
}

func checkersOf(of waybill.WhoChecks) ManagerOption {
	return func(m *ImagePullManager) {
		m.checker = func(image, runtimeHandler string) waybill.VerifiedBy {
			of := of
			of.Image, of.RuntimeHandler = image, runtimeHandler
			answer, err := store.Library.WhoChecks(context.Background(), of)
			if err != nil {
				return waybill.VerifiedByUnknown
			}
			return answer.VerifiedBy
		}
	}
}

type proofTermsKey struct{}

// pulledWith is what a pull's proof is of.
type pulledWith struct {
	manager        *ImagePullManager
	runtimeHandler string
	credential     *credentialprovider.TrackedAuthConfig
}

// WithPulledCredential returns a context by which [ImagePullManager.RecordImagePulled] records who checked the
// credential that a pull showed (CheckersOf), and until when it is good by its own word. nil: the pull showed none.
func WithPulledCredential(ctx context.Context, manager pullmanager.ImagePullManager, runtimeHandler string,
	credential *credentialprovider.TrackedAuthConfig) context.Context {
	m, ours := manager.(*ImagePullManager)
	if !ours {
		return ctx
	}
	return context.WithValue(ctx, proofTermsKey{}, pulledWith{m, runtimeHandler, credential})
}

func (m *ImagePullManager) termsOf(ctx context.Context, image string) (by waybill.VerifiedBy, until time.Time) {
	with, ok := ctx.Value(proofTermsKey{}).(pulledWith)
	if !ok || with.manager != m {
		return "", time.Time{}
	}
	if m.checker != nil {
		by = m.checker(image, with.runtimeHandler)
	}
	return by, goodUntil(with.credential)
}

// goodUntil returns the time at which a credential ends, if it says so itself: a JSON Web Token, as a credential
// provider with the cache type Token passes it on. The claims are those of the pod's own credential, and
// an end can only close, so the signature does not matter. The zero value: unknown.
func goodUntil(credential *credentialprovider.TrackedAuthConfig) time.Time {
	var until time.Time
	if credential == nil {
		return until
	}
	for _, token := range []string{credential.Password, credential.RegistryToken, credential.IdentityToken} {
		if end := expiryOf(token); !end.IsZero() && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	return until
}

func expiryOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > 64<<10 {
		return time.Time{}
	}
	var kind struct {
		Algorithm string `json:"alg"`
	}
	var end struct {
		Expiry *float64 `json:"exp"`
	}
	for i, into := range []any{&kind, &end} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(text, into) != nil {
			return time.Time{}
		}
	}
	if kind.Algorithm == "" || end.Expiry == nil || *end.Expiry > 253402300799 { // of year 9999
		return time.Time{}
	}
	// The store takes times after 1970; what ended before has ended.
	return time.Unix(int64(max(*end.Expiry, 1)), 0)
}
