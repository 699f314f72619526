// SPDX-License-Identifier: Apache-2.0
//
// Which chat template the files of a model folder name.
#ifndef MC_MODEL_CHAT_SOURCE_H_
#define MC_MODEL_CHAT_SOURCE_H_

#include <map>
#include <string>

#include "core/result.h"
#include "model/chat.h"
#include "model/tokenizer.h"

namespace mc::model {

// `files` has names and bytes of a model folder.  chat_template.jinja comes before "chat_template"
// of tokenizer_config.json, of which a list has its entry "default" taken.  A model without one has
// ChatML where its tokenizer has <|im_start|> and <|im_end|>, else a Chat that is an error.
// kInvalidInput where the template does not compile.
Result<Chat> chat_of(const std::map<std::string, std::string>& files, const Tokenizer& tokenizer);

}  // namespace mc::model

#endif  // MC_MODEL_CHAT_SOURCE_H_
