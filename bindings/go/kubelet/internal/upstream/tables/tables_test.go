//go:build waybill_upstream

// Package tables plays the tables of the kubelet's image_pull_manager_test.go on waybill. The other file
// of the package, with the tables, is made from the module k8s.io/kubernetes while the test runs.
package tables

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
	"waybill.dev/go/kubelet"
	"waybill.dev/go/store"
)

var quiet = klog.NewContext(context.Background(), logr.Discard())

// The runtime's list; nil: it does not answer.
type imageService struct {
	kubecontainer.ImageService
	images []kubecontainer.Image
}

func (s imageService) ListImages(context.Context) ([]kubecontainer.Image, error) {
	if s.images == nil {
		return nil, errors.New("the runtime is away")
	}
	return s.images, nil
}

func (imageService) GetImageRef(context.Context, kubecontainer.ImageSpec) (string, error) {
	return "", nil
}

type node struct {
	t       *testing.T
	store   *store.Store
	manager *kubelet.ImagePullManager
}

func rules() waybill.Mode {
	if os.Getenv("WAYBILL_RULES") == "strict" {
		return waybill.ModeStrict
	}
	return waybill.ModeKubelet
}

// start opens a store over files of the kubelet's.
func start(t *testing.T, policy kubeletconfig.ImagePullCredentialsVerificationPolicy, images []kubecontainer.Image, pulling, pulled []string) *node {
	t.Helper()
	directory := t.TempDir()
	for folder, names := range map[string][]string{"pulling": pulling, "pulled": pulled} {
		to := filepath.Join(directory, "image_manager", folder)
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(os.Getenv("WAYBILL_TESTDATA"), folder, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(to, name), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	opened, err := kubelet.OpenStore(quiet, kubelet.Setup{
		Directory: filepath.Join(directory, "waybill"), KubeletDirectory: directory, Settings: waybill.Settings{Mode: rules(), MapBytes: 16 << 20},
		VerificationPolicy: policy, ImageService: imageService{images: images}, NoSocket: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	n := &node{t: t, store: opened}
	if n.manager, err = kubelet.NewImagePullManager(opened, imageService{images: images}); err != nil {
		t.Fatal(err)
	}
	return n
}

func fileOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// intents and records return what would be in pulling/ and pulled/.
func (n *node) intents() map[string]*kubeletconfig.ImagePullIntent {
	n.t.Helper()
	listed, err := n.store.ListPulls(quiet, waybill.ListPulls{})
	if err != nil {
		n.t.Fatal(err)
	}
	files := map[string]*kubeletconfig.ImagePullIntent{}
	for _, intent := range listed.Pulls {
		if intent.RuntimeHandler == "" && !intent.AnyImage && intent.State != waybill.StateDropped {
			files[fileOf(intent.Image)] = &kubeletconfig.ImagePullIntent{Image: intent.Image}
		}
	}
	return files
}

func (n *node) records() map[string]*kubeletconfig.ImagePulledRecord {
	n.t.Helper()
	if err := n.store.Flush(quiet); err != nil {
		n.t.Fatal(err)
	}
	listed, err := n.store.ListImages(quiet, waybill.ListImages{Hashes: true})
	if err != nil {
		n.t.Fatal(err)
	}
	files := map[string]*kubeletconfig.ImagePulledRecord{}
	for _, record := range listed.Records {
		if record.RuntimeHandler == "" && record.AbsentSince.IsZero() { // what is gone has no file
			files[fileOf(record.ImageRef)] = asInAFile(record)
		}
	}
	return files
}

func asInAFile(record waybill.PulledRecord) *kubeletconfig.ImagePulledRecord {
	file := &kubeletconfig.ImagePulledRecord{ImageRef: record.ImageRef, LastUpdatedTime: metav1.NewTime(record.Updated.Truncate(time.Second))}
	for name, credentials := range record.Credentials {
		if file.CredentialMapping == nil {
			file.CredentialMapping = map[string]kubeletconfig.ImagePullCredentials{}
		}
		entry := kubeletconfig.ImagePullCredentials{NodePodsAccessible: credentials.EveryPod}
		for _, secret := range credentials.Secrets {
			entry.KubernetesSecrets = append(entry.KubernetesSecrets, kubeletconfig.ImagePullSecret{UID: secret.UID, Namespace: secret.Namespace, Name: secret.Name, CredentialHash: secret.Hash})
		}
		for _, account := range credentials.ServiceAccounts {
			entry.KubernetesServiceAccounts = append(entry.KubernetesServiceAccounts, kubeletconfig.ImagePullServiceAccount{UID: account.UID, Namespace: account.Namespace, Name: account.Name})
		}
		file.CredentialMapping[name] = entry
	}
	return file
}

func sameFiles[V any](t *testing.T, what string, got map[string]V, want []string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(got))
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("%s: got %q, want %q", what, names, want)
	}
}

// policyOf recognizes a policy by its answers.
func policyOf(t *testing.T, policy interface {
	RequireCredentialVerificationForImage(image string, pulledByKubelet bool) bool
}, image string) kubeletconfig.ImagePullCredentialsVerificationPolicy {
	switch [2]bool{policy.RequireCredentialVerificationForImage(image, false), policy.RequireCredentialVerificationForImage(image, true)} {
	case [2]bool{false, false}:
		return kubeletconfig.NeverVerify
	case [2]bool{false, true}:
		return kubeletconfig.NeverVerifyPreloadedImages
	case [2]bool{true, true}:
		return kubeletconfig.AlwaysVerify
	}
	t.Fatal("a policy that is not known")
	return ""
}

func TestMustAttemptImagePull(t *testing.T) {
	for _, tt := range casesOfMustAttemptImagePull {
		t.Run(tt.name, func(t *testing.T) {
			var images []kubecontainer.Image
			if rules() == waybill.ModeStrict && tt.imageRef != "" {
				images = []kubecontainer.Image{{ID: tt.imageRef, RepoTags: []string{tt.image}}}
			}
			n := start(t, policyOf(t, tt.imagePullPolicy, tt.image), images, tt.pullingFiles, tt.pulledFiles)
			before, asked := n.records(), false
			pull, err := n.manager.MustAttemptImagePull(quiet, tt.image, tt.imageRef, func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
				asked = true
				return tt.podSecrets, tt.podServiceAccount, nil
			})
			if pull != tt.want || err != nil {
				t.Errorf("got %t, %v, want %t", pull, err, tt.want)
			}
			if asked != tt.wantPodCredsRequested {
				t.Errorf("asked for the pod's credentials: %t, want %t", asked, tt.wantPodCredsRequested)
			}
			after := n.records()
			if written := !reflect.DeepEqual(before, after); written != tt.expectedCacheWrite {
				t.Errorf("wrote a record: %t, want %t", written, tt.expectedCacheWrite)
			}
			if tt.expectedPullRecord != nil {
				sameRecord(t, after[fileOf(tt.imageRef)], *tt.expectedPullRecord)
			}
		})
	}
}

func sameRecord(t *testing.T, got *kubeletconfig.ImagePulledRecord, want kubeletconfig.ImagePulledRecord) {
	t.Helper()
	if got == nil {
		t.Fatal("there is no record")
	}
	want.LastUpdatedTime = got.LastUpdatedTime
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("the record: got %+v, want %+v", *got, want)
	}
}

func TestRecordPullIntent(t *testing.T) {
	for _, tt := range casesOfRecordPullIntent {
		t.Run(tt.name, func(t *testing.T) {
			n := start(t, kubeletconfig.NeverVerifyPreloadedImages, nil, nil, nil)
			for range tt.startCounter + 1 {
				if err := n.manager.RecordPullIntent(logr.Discard(), tt.inputImage); err != nil {
					t.Fatal(err)
				}
			}
			sameFiles(t, "intents", n.intents(), []string{tt.wantFile})
			if got := n.intents()[tt.wantFile]; got == nil || got.Image != tt.inputImage {
				t.Errorf("the intent: %+v", got)
			}
			// As many pulls are counted as must end before the intent is gone.
			for range tt.wantCounter {
				if len(n.intents()) == 0 {
					t.Error("the intent is gone too early")
				}
				n.manager.RecordImagePullFailed(quiet, tt.inputImage)
			}
			sameFiles(t, "intents after the last pull", n.intents(), nil)
		})
	}
}

func TestRecordImagePulled(t *testing.T) {
	for _, tt := range casesOfRecordImagePulled {
		t.Run(tt.name, func(t *testing.T) {
			// The intents of the pulls under way are made below; what is left is an earlier kubelet's.
			pulling := slices.DeleteFunc(slices.Clone(tt.existingPulling), func(name string) bool {
				return tt.pullsInFlight > 0 && name == fileOf(tt.image)
			})
			n := start(t, kubeletconfig.NeverVerifyPreloadedImages, nil, pulling, tt.existingPulled)
			for range tt.pullsInFlight {
				if err := n.manager.RecordPullIntent(logr.Discard(), tt.image); err != nil {
					t.Fatal(err)
				}
			}
			n.manager.RecordImagePulled(quiet, tt.image, tt.imageRef, tt.creds)
			records, intents := n.records(), n.intents()
			for _, name := range tt.expectPulled {
				if records[name] == nil {
					t.Errorf("the record %s is missing", name)
				}
			}
			if name := tt.expectPullingRemoved; name != "" && intents[name] != nil {
				t.Errorf("the intent %s is still there", name)
			}
			if left := intents[fileOf(tt.image)] != nil; left != (tt.pullsInFlight > 1) {
				t.Errorf("the intent is there: %t, with %d pulls before", left, tt.pullsInFlight)
			}
			sameRecord(t, records[tt.checkedPullFile], tt.expectedPullRecord)
			age := time.Since(records[tt.checkedPullFile].LastUpdatedTime.Time)
			if tt.expectUpdated && age > time.Minute || !tt.expectUpdated && age < 240*time.Minute {
				t.Errorf("the record is %s old; updated: want %t", age, tt.expectUpdated)
			}
		})
	}
}

func TestInitialize(t *testing.T) {
	for _, tt := range casesOfInitialize {
		t.Run(tt.name, func(t *testing.T) {
			n := start(t, kubeletconfig.NeverVerifyPreloadedImages, imagesOfInitialize, tt.existingIntents, tt.existingPulledRecords)
			if status, err := n.store.GetStatus(quiet, waybill.GetStatus{}); err != nil || status.Opening.Classified != nil {
				t.Logf("classified: %+v, %v", status.Opening.Classified, err)
			}
			sameFiles(t, "intents", n.intents(), tt.expectedIntents.UnsortedList())
			sameFiles(t, "records", n.records(), tt.expectedPulled.UnsortedList())
		})
	}
}

// Whatever is stored: what the kubelet closes at its start is closed.
func TestInitializeCloses(t *testing.T) {
	for _, tt := range casesOfInitialize {
		t.Run(tt.name, func(t *testing.T) {
			n := start(t, kubeletconfig.NeverVerifyPreloadedImages, imagesOfInitialize, tt.existingIntents, tt.existingPulledRecords)
			for _, image := range imagesOfInitialize {
				if !tt.expectedPulled.Has(fileOf(image.ID)) {
					continue
				}
				for _, name := range append(image.RepoTags, image.ID) {
					pull, err := n.manager.MustAttemptImagePull(quiet, name, image.ID, func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
						return nil, nil, nil
					})
					if !pull || err != nil {
						t.Errorf("%s, %s: a pod without credentials must pull: %t, %v", image.ID, name, pull, err)
					}
				}
			}
		})
	}
}

func TestPruneUnknownRecords(t *testing.T) {
	for _, tt := range casesOfPruneUnknownRecords {
		t.Run(tt.name, func(t *testing.T) {
			var images []kubecontainer.Image
			if rules() == waybill.ModeStrict { // asks the runtime
				images = []kubecontainer.Image{}
				for _, ref := range tt.imageList {
					images = append(images, kubecontainer.Image{ID: ref, RepoTags: []string{"registry.example/" + ref + ":1"}})
				}
			}
			n := start(t, kubeletconfig.NeverVerifyPreloadedImages, images, nil, tt.pulledFiles)
			n.manager.PruneUnknownRecords(quiet, tt.imageList, tt.gcStartTime)
			sameFiles(t, "records", n.records(), tt.wantFiles.UnsortedList())
		})
	}
}
