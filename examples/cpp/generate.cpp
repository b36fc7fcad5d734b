// SPDX-License-Identifier: Apache-2.0
// Streams one answer from a router's socket.
//
//     example-generate tcp://127.0.0.1:8001 "Why is the sky blue?"
#include <iostream>

#include "clients/cpp/brigade_client.h"

namespace {

brigade::Status run(const std::string& endpoint, const std::string& question) {
  ASSIGN_OR_RETURN(const auto client, brigade::client::Client::connect({.endpoint = endpoint}));
  ASSIGN_OR_RETURN(const auto models, client->models());
  if (models.empty()) return brigade::not_found("the router serves no model");

  const brigade::wire::Generate request = {
      .model = models[0].name,
      .prompt = brigade::wire::ChatPrompt{{{"user", question}}},
      .params = {.temperature = 0, .max_tokens = 100}};
  const auto deadline = brigade::Clock::now() + std::chrono::minutes(2);
  ASSIGN_OR_RETURN(const auto finished, client->generate(
                                            request,
                                            [](const brigade::wire::Chunk& chunk) {
                                              std::cout << chunk.text << std::flush;
                                              return true;  // go on
                                            },
                                            deadline));
  std::cout << "\n(" << finished.prompt_tokens << " tokens in, " << finished.completion_tokens
            << " out)\n";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " ENDPOINT QUESTION\n";
    return 2;
  }
  const brigade::Status status = run(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::cerr << "error: " << status.message() << '\n';
  return 1;
}
