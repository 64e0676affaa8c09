import type { HistoryItem, SamplingOptions, TokenId } from './llama-library.ts'
import type { LoadedModel } from './load-model.ts'

export interface GenerateRequest {
  readonly history: readonly HistoryItem[]
  /** The grammar for the answer; undefined if the answer is unconstrained. */
  readonly gbnf: string | undefined
  readonly sampling: SamplingOptions
  readonly maxTokens: number | undefined
  readonly signal: AbortSignal
  emit(kind: 'text' | 'thinking', text: string): void
  tooLong(tokens: number): Error
}

export interface GenerateResult {
  readonly isCut: boolean
  readonly promptTokens: number
  readonly completionTokens: number
}

/** Minimum number of tokens that must be available for the answer. */
const minAnswerTokens = 64
/** The prompt is evaluated in slices of this many tokens, so that evaluation can be cancelled between slices. */
const slice = 128

export async function generate(loaded: LoadedModel, request: GenerateRequest): Promise<GenerateResult> {
  const { sequence, context } = loaded
  const { signal } = request
  const prompt = promptFor(loaded, request)
  const room = context - prompt.length
  if (room < minAnswerTokens) throw request.tooLong(prompt.length)
  const maxTokens = Math.min(request.maxTokens ?? room, room - 1)
  // Do not evaluate the last token yet: it is evaluated when the answer is generated.
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false)
  for (let at = sequence.nextTokenIndex; prompt.length - at > slice; at += slice) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, at + slice))
  }
  signal.throwIfAborted()
  const { completionTokens, isCut } = await (request.gbnf === undefined
    ? generateFreely(loaded, request, maxTokens)
    : generateConstrained(loaded, request, request.gbnf, prompt.slice(sequence.nextTokenIndex), maxTokens))
  return { isCut, promptTokens: prompt.length, completionTokens }
}

type Written = Omit<GenerateResult, 'promptTokens'>

function promptFor({ wrapper, model }: LoadedModel, { history, gbnf }: GenerateRequest): readonly TokenId[] {
  const { contextText, prefixTriggers, noPrefixTrigger } = wrapper.generateContextState({ chatHistory: history })
  const tokens = contextText.tokenize(model.tokenizer)
  if (gbnf === undefined) return tokens
  // Some models first announce what kind of answer follows. A grammar prevents that, so write the announcement on the
  // model's behalf.
  const opening = prefixTriggers?.find(({ type }) => type === 'response')
  const generated =
    noPrefixTrigger?.type === 'response' ? [noPrefixTrigger.inject] : [opening?.triggers[0], opening?.inject]
  return [...tokens, ...generated.flatMap((text) => text?.tokenize(model.tokenizer) ?? [])]
}

/** Generates an answer with a grammar. The answer ends where the grammar ends. */
async function generateConstrained(
  { library, llama, model, sequence }: LoadedModel,
  { sampling, signal, emit }: GenerateRequest,
  gbnf: string,
  prompt: readonly TokenId[],
  maxTokens: number,
): Promise<Written> {
  const grammar = await llama.createGrammar({ grammar: gbnf })
  const grammarEvaluationState = new library.LlamaGrammarEvaluationState({ model, grammar })
  const generated: TokenId[] = []
  let emitted = 0
  for await (const token of sequence.evaluate(prompt, { ...sampling, grammarEvaluationState })) {
    signal.throwIfAborted()
    generated.push(token)
    // Keep special tokens in the text, because the grammar treats them as text.
    const text = model.detokenize(generated.slice(emitted), true, generated.slice(Math.max(0, emitted - 8), emitted))
    // A character may span several tokens, so wait until it is complete.
    if (!text.endsWith('\ufffd')) {
      emit('text', text)
      emitted = generated.length
    }
    if (generated.length >= maxTokens) return { isCut: true, completionTokens: generated.length }
  }
  return { isCut: false, completionTokens: generated.length }
}

/** Generates an answer without a grammar. The library detects thinking and the end of the answer. */
async function generateFreely(
  { library, sequence, wrapper }: LoadedModel,
  { history, sampling, signal, emit }: GenerateRequest,
  maxTokens: number,
): Promise<Written> {
  const chat = new library.LlamaChat({ contextSequence: sequence, chatWrapper: wrapper })
  const before = sequence.tokenMeter.usedOutputTokens
  try {
    const { metadata } = await chat.generateResponse(history, {
      ...sampling,
      maxTokens,
      signal,
      contextShift: { size: 1 },
      onResponseChunk: ({ segmentType, text }) => emit(segmentType === undefined ? 'text' : 'thinking', text),
    })
    return {
      isCut: metadata.stopReason === 'maxTokens',
      completionTokens: sequence.tokenMeter.usedOutputTokens - before,
    }
  } finally {
    chat.dispose({ disposeSequence: false })
  }
}
