package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"waybill.dev/go"
)

// The world around the node: a registry with private and public repositories, and tenants with one
// secret each. It is the same for every process.

const (
	tenants = 5
	images  = 24
)

func tenantName(tenant int) string { return fmt.Sprintf("team-%d", tenant) }

// imageName is the image string that pods write.
func imageName(image int) string {
	return fmt.Sprintf("registry.example.com/apps/app-%d:v1", image)
}

// imageRef is what the runtime calls the image. Every third one has the content of the one before it,
// and so its ref: one record, two image names in it.
func imageRef(image int) string {
	if image%3 == 2 {
		image--
	}
	sum := sha256.Sum256([]byte(imageName(image)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// preloaded images were on the node before any pod.
func preloaded(image int) bool { return image < 3 }

// public images are pulled without credentials.
func public(image int) bool { return image >= 3 && image < 6 }

// allows says whether the registry gives the tenant the image.
func allows(image, tenant int) bool {
	return public(image) || !preloaded(image) && (image+tenant)%3 == 0
}

// secretOf is the tenant's secret, after it was deleted and created anew so many times. Rotating it
// changes the hash and nothing else.
func secretOf(tenant, deletions int, generation int64) waybill.ImagePullSecret {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d", tenant, deletions, generation))
	return waybill.ImagePullSecret{
		UID:            fmt.Sprintf("5b1e0f4a-0000-4000-8000-%06d%06d", deletions, tenant),
		Namespace:      tenantName(tenant),
		Name:           "registry",
		CredentialHash: hex.EncodeToString(sum[:]),
	}
}
