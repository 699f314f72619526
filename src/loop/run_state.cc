// SPDX-License-Identifier: Apache-2.0
#include "loop/run_state.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace mc::loop {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const rl::RetryItem& item) {
  const rl::FailedCandidate& c = item.candidate;
  return {{"task", c.task},
          {"prompt", c.prompt},
          {"code", c.code},
          {"outcome", c.outcome},
          {"stage", static_cast<int>(c.stage)},
          {"feedback", c.feedback},
          {"s", c.s},
          {"q", c.q},
          {"step", c.step},
          {"group", c.group},
          {"ready_at", item.ready_at}};
}

rl::RetryItem item_of(const Json& json) {
  rl::RetryItem item;
  rl::FailedCandidate& c = item.candidate;
  json.at("task").get_to(c.task);
  json.at("prompt").get_to(c.prompt);
  json.at("code").get_to(c.code);
  json.at("outcome").get_to(c.outcome);
  c.stage = static_cast<rl::Stage>(json.at("stage").get<int>());
  json.at("feedback").get_to(c.feedback);
  json.at("s").get_to(c.s);
  json.at("q").get_to(c.q);
  json.at("step").get_to(c.step);
  json.at("group").get_to(c.group);
  json.at("ready_at").get_to(item.ready_at);
  return item;
}

}  // namespace

std::string json_text(const LoopState& state) {
  Json json;
  json["optimizer_steps"] = state.optimizer_steps;
  json["drifts"] = state.drifts.mean_abs;
  json["replays"] = state.retries.replays;
  json["items"] = Json::array();
  for (const rl::RetryItem& item : state.retries.items) json["items"].push_back(json_of(item));
  return json.dump();
}

Result<LoopState> loop_state_from_json(const std::string& text) {
  LoopState state;
  try {
    const Json json = Json::parse(text);
    json.at("optimizer_steps").get_to(state.optimizer_steps);
    json.at("drifts").get_to(state.drifts.mean_abs);
    json.at("replays").get_to(state.retries.replays);
    for (const Json& item : json.at("items")) state.retries.items.push_back(item_of(item));
  } catch (const Json::exception& failure) {
    return Error{ErrorCode::kInvalidInput, std::string("is no state of a run: ") + failure.what()};
  }
  return state;
}

}  // namespace mc::loop
