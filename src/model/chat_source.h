// SPDX-License-Identifier: Apache-2.0
//
// Finds the chat template of a model folder.
#ifndef MC_MODEL_CHAT_SOURCE_H_
#define MC_MODEL_CHAT_SOURCE_H_

#include <map>
#include <string>

#include "core/result.h"
#include "model/chat.h"
#include "model/tokenizer.h"

namespace mc::model {

// The chat format of a model.  `files` contains names and bytes of files in its folder.  The
// template is chat_template.jinja, else "chat_template" of tokenizer_config.json (of a list, the
// entry "default"). A model without a template uses ChatML if its tokenizer has <|im_start|> and
// <|im_end|>; otherwise the result is a Chat whose every rendering fails. kInvalidInput if the
// template does not compile.
Result<Chat> chat_of(const std::map<std::string, std::string>& files, const Tokenizer& tokenizer);

}  // namespace mc::model

#endif  // MC_MODEL_CHAT_SOURCE_H_
