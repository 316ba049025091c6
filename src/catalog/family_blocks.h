// What single families say of their block in keys of their own.
#pragma once

#include "catalog/architecture.h"
#include "catalog/decoder_values.h"

namespace orrery {

// Each reads its keys, with the defaults of the modelling code, into an architecture whose shape
// and common options are read. InputError for a shape that is not supported.
void read_chatglm(DecoderValues&, Architecture&);
void read_cohere(DecoderValues&, Architecture&);
void read_dbrx(DecoderValues&, Architecture&);
void read_ernie(DecoderValues&, Architecture&);
void read_falcon(DecoderValues&, Architecture&);
void read_glm4_moe(DecoderValues&, Architecture&);
void read_gpt_bigcode(DecoderValues&, Architecture&);
void read_gpt_neox(DecoderValues&, Architecture&);
void read_gpt_oss(DecoderValues&, Architecture&);
void read_hunyuan(DecoderValues&, Architecture&);
void read_internlm(DecoderValues&, Architecture&);
void read_internlm2(DecoderValues&, Architecture&);
void read_internlm3(DecoderValues&, Architecture&);
void read_latent(DecoderValues&, Architecture&);
void read_megatron(DecoderValues&, Architecture&);
void read_mpt(DecoderValues&, Architecture&);
void read_olmo(DecoderValues&, Architecture&);
void read_opt(DecoderValues&, Architecture&);
void read_phi(DecoderValues&, Architecture&);
void read_phimoe(DecoderValues&, Architecture&);
void read_qwen(DecoderValues&, Architecture&);
void read_qwen2_moe(DecoderValues&, Architecture&);
void read_seed_oss(DecoderValues&, Architecture&);
void read_stablelm(DecoderValues&, Architecture&);
void read_starcoder2(DecoderValues&, Architecture&);
void read_wide_qk_norm(DecoderValues&, Architecture&);

}  // namespace orrery
