package kubelet

import (
	"cmp"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/credentialprovider"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
)

const (
	private   = "registry.example/a/app:v1"
	privateID = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"
)

func trackedSecret(uid, password string) credentialprovider.TrackedAuthConfig {
	return credentialprovider.TrackedAuthConfig{
		AuthConfig: credentialprovider.AuthConfig{Username: "a", Password: password}, AuthConfigHash: "hash of " + password,
		Source: &credentialprovider.CredentialSource{Secret: &credentialprovider.SecretCoordinates{UID: uid, Namespace: "a", Name: "pull"}},
	}
}

func imagePullSecret(of credentialprovider.TrackedAuthConfig) kubeletconfig.ImagePullSecret {
	at := of.Source.Secret
	return kubeletconfig.ImagePullSecret{UID: at.UID, Namespace: at.Namespace, Name: at.Name, CredentialHash: of.AuthConfigHash}
}

// pullsAs does what the kubelet's pullImage does.
func pullsAs(t *testing.T, manager *ImagePullManager, used credentialprovider.TrackedAuthConfig) {
	t.Helper()
	ctx, err := RecordPullIntent(klog.NewContext(t.Context(), logr.Discard()), manager, private)
	must(t, err)
	ctx = WithPulledCredential(ctx, manager, "", &used)
	manager.RecordImagePulled(ctx, private, privateID, &kubeletconfig.ImagePullCredentials{
		KubernetesSecrets: []kubeletconfig.ImagePullSecret{imagePullSecret(used)}})
}

// The record says who checked, and until when the credential is good.
func TestAPullIsRecordedWithItsTerms(t *testing.T) {
	end := time.Unix(1_900_000_060, 0)
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1900000060}`)) + ".signature"
	for _, by := range []waybill.VerifiedBy{waybill.VerifiedByUnknown, waybill.VerifiedByRegistry, waybill.VerifiedByMirror} {
		store, manager := newManager(t, waybill.ModeStrict, &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:cc", pause)}})
		if by != waybill.VerifiedByUnknown { // which is what is known without CheckersOf
			manager.checker = func(string, string) waybill.VerifiedBy { return by }
		}
		pullsAs(t, manager, trackedSecret("1", token))
		proofs := recordOf(t, store, privateID).Credentials["registry.example/a/app"].Secrets
		if len(proofs) != 1 || cmp.Or(proofs[0].Proof.VerifiedBy, waybill.VerifiedByUnknown) != by || !proofs[0].Proof.ValidUntil.Equal(end) {
			t.Errorf("%+v, want %v until %v", proofs, by, end)
		}
	}
}

// The node's own credential may have served it, so it opens nothing that a Secret opened, and no registry checked it.
func TestAPullWithoutCredentialsTakesNoSecretsPlace(t *testing.T) {
	for _, had := range []bool{false, true} {
		store, manager := newManager(t, waybill.ModeStrict, &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:cc", pause)}})
		manager.checker = func(string, string) waybill.VerifiedBy { return waybill.VerifiedByRegistry }
		if had {
			pullsAs(t, manager, trackedSecret("1", "secret"))
		}
		ctx, err := RecordPullIntent(klog.NewContext(t.Context(), logr.Discard()), manager, private)
		must(t, err)
		manager.RecordImagePulled(WithPulledCredential(ctx, manager, "", nil), private, privateID,
			&kubeletconfig.ImagePullCredentials{NodePodsAccessible: true})
		record := recordOf(t, store, privateID).Credentials["registry.example/a/app"]
		same(t, "every pod may use it", record.EveryPod, !had)
		if !had {
			same(t, "who checked", record.EveryPodProof.VerifiedBy, waybill.VerifiedByNobody)
		}
	}
}

// As containerd reads it.
func TestCheckersOf(t *testing.T) {
	root := scratchDir(t)
	write := func(path, text string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o644))
	}
	write("etc/containerd/config.toml", `version = 3
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = '/etc/containerd/certs.d'
`)
	manager := &ImagePullManager{}
	checkersOf(waybill.WhoChecks{Runtime: "containerd", Root: root})(manager)
	same(t, "without a mirror", manager.checker(private, ""), waybill.VerifiedByRegistry)
	write("etc/containerd/certs.d/registry.example/hosts.toml", `[host."https://mirror.example"]`)
	same(t, "with one, from the next pull on", manager.checker(private, ""), waybill.VerifiedByMirror)
	checkersOf(waybill.WhoChecks{Runtime: "another", Root: root})(manager)
	same(t, "another runtime", manager.checker(private, ""), waybill.VerifiedByUnknown)
}

func TestGoodUntil(t *testing.T) {
	token := func(header, claims string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(header)) + "." + encode([]byte(claims)) + ".signature"
	}
	early, late := time.Unix(1_900_000_000, 0), time.Unix(1_900_000_060, 0)
	jwt := token(`{"alg":"RS256"}`, `{"exp":1900000060,"sub":"system:serviceaccount:a:builder"}`)
	for password, want := range map[string]time.Time{
		jwt: late,
		token(`{"alg":"RS256"}`, `{"exp":1900000000.9}`): early,
		"secret":                       {},
		"":                             {},
		token(`{"alg":"RS256"}`, `{}`): {},
		token(`{"alg":"RS256"}`, `{"exp":"tomorrow"}`): {},
		token(`{"alg":"RS256"}`, `{"exp":-1}`):         time.Unix(1, 0),
		token(`{"alg":"RS256"}`, `{"exp":0}`):          time.Unix(1, 0),
		token(`{"alg":"RS256"}`, `{"exp":1e300}`):      {},
		token(`{}`, `{"exp":1900000000}`):              {},
		token(`{"alg":"RS256"}`, `not JSON`):           {},
		"a.b.c":                                        {},
	} {
		of := credentialprovider.TrackedAuthConfig{AuthConfig: credentialprovider.AuthConfig{Password: password}}
		if got := goodUntil(&of); !got.Equal(want) {
			t.Errorf("%.60s: %v, not %v", password, got, want)
		}
	}
	both := credentialprovider.AuthConfig{Password: token(`{"alg":"none"}`, `{"exp":1900000000}`), IdentityToken: jwt}
	if got := goodUntil(&credentialprovider.TrackedAuthConfig{AuthConfig: both}); !got.Equal(early) {
		t.Errorf("what ends first counts: %v", got)
	}
	if !goodUntil(nil).IsZero() {
		t.Error("an anonymous pull ends")
	}
}

// A mirror's proof opens nothing where the policy wants the registry's.
func TestProofsByTheRegistry(t *testing.T) {
	for by, open := range map[waybill.VerifiedBy]bool{waybill.VerifiedByMirror: false, waybill.VerifiedByUnknown: false, waybill.VerifiedByRegistry: true} {
		setup := setupIn(scratchDir(t), listedAs("sha256:cc", pause))
		setup.RegistryOnly = []string{"*"}
		store := openSetup(t, quiet, setup)
		manager, err := NewImagePullManager(store, setup.ImageService)
		must(t, err)
		manager.checker = func(string, string) waybill.VerifiedBy { return by }
		secret := trackedSecret("1", "garbage")
		pullsAs(t, manager, secret)
		if got := !mustPull(t, manager, private, privateID, credentialsOf(imagePullSecret(secret))); got != open {
			t.Errorf("checked by %v: open %v", by, got)
		}
	}
}
