// The few values that histories are made of. Few, so that they meet again and again.

#ifndef WAYBILL_TESTS_MODEL_DRAWN_VALUES_H_
#define WAYBILL_TESTS_MODEL_DRAWN_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/model.h"

namespace waybill::testing {

const std::vector<std::string>& Refs();

const KnownImage& DrawImage(Draw& draw);
ImagePullSecret DrawSecret(Draw& draw);
// Mostly none to three; now and then up to 120, and doubles.
std::vector<ImagePullSecret> DrawSecrets(Draw& draw);
// nullopt: unknown.
std::optional<ImagePullCredentials> DrawCredentials(Draw& draw);
ModelPod DrawPod(Draw& draw);
ModelPolicy DrawPolicy(Draw& draw);
ImagePulledRecord DrawRecord(Draw& draw, Timestamp now);
std::vector<ImageOnNode> DrawImagesOnNode(Draw& draw);
std::vector<std::string> DrawRefs(Draw& draw);

// Runtime handlers (drawn_handlers.cc).
const std::vector<std::string>& HandlerNames();
// Mostly a default one and others; sound.
std::vector<RuntimeHandler> DrawHandlers(Draw& draw);
// A default handler, if only nameless.
RuntimeHandler DrawDefaultHandler(Draw& draw);
// Others beside it.
std::vector<RuntimeHandler> DrawHandlersBeside(Draw& draw, const RuntimeHandler& its_default);
// Not sound.
std::vector<RuntimeHandler> DrawBadHandlers(Draw& draw);
PulledManifest DrawAnyManifest(Draw& draw);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_DRAWN_VALUES_H_
