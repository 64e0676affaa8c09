/**
 * The part of `node-llama-cpp` that we use. The package is optional, so its types are not available, and options that we
 * only pass on are not described again.
 */
export interface LlamaLibrary {
  getLlama(
    options: { logger(level: string, message: string): void } & Readonly<Record<string, unknown>>,
  ): Promise<Llama>
  resolveChatWrapper(model: LlamaModel, options: object): ChatWrapper
  readonly LlamaGrammarEvaluationState: new (options: {
    readonly model: LlamaModel
    readonly grammar: object
  }) => object
  readonly LlamaChat: new (options: object) => LlamaChat
  readonly InsufficientMemoryError: new () => Error
}

export interface Llama {
  loadModel(options: object): Promise<LlamaModel>
  createGrammar(options: { readonly grammar: string }): Promise<object>
}

export type TokenId = number

export interface LlamaModel {
  /** Opaque to us. */
  readonly tokenizer: object
  readonly trainContextSize: number
  readonly fileInfo: { readonly metadata: { readonly tokenizer?: { readonly chat_template?: string } } }
  readonly fileInsights: {
    estimateContextResourceRequirements(options: object): { readonly cpuRam: number }
  }
  createContext(options: object): Promise<LlamaContext>
  detokenize(tokens: readonly TokenId[], specialTokens: boolean, lastTokens: readonly TokenId[]): string
  /** Disposes of the model and its contexts. */
  dispose(): Promise<void>
}

export interface LlamaContext {
  readonly contextSize: number
  getSequence(): TokenSequence
  /** The native context; internal to the library and therefore optional. */
  readonly _ctx?: { sampleToken?(...given: unknown[]): Promise<unknown> }
}

/** The tokens that a context has evaluated. */
export interface TokenSequence {
  readonly nextTokenIndex: number
  readonly tokenMeter: { readonly usedOutputTokens: number }
  /** Keeps the prefix that the evaluated tokens share with these tokens, and removes the rest. */
  adaptStateToTokens(tokens: readonly TokenId[], allowShift: boolean): Promise<void>
  evaluateWithoutGeneratingNewTokens(tokens: readonly TokenId[]): Promise<void>
  evaluate(
    tokens: readonly TokenId[],
    options: SamplingOptions & { readonly grammarEvaluationState: object },
  ): AsyncGenerator<TokenId>
}

export interface SamplingOptions {
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  readonly minP: number
  readonly seed: number
}

/** Formats a conversation for the model. */
export interface ChatWrapper {
  generateContextState(options: { readonly chatHistory: readonly HistoryItem[] }): {
    readonly contextText: LlamaText
    /** Text that some models write before an answer. */
    readonly prefixTriggers?: readonly ({ readonly triggers: readonly LlamaText[] } & Opening)[]
    readonly noPrefixTrigger?: Opening
  }
}

interface Opening {
  readonly type: 'functionCall' | 'segment' | 'response'
  readonly inject?: LlamaText
}

export interface LlamaText {
  tokenize(tokenizer: object): TokenId[]
}

export type HistoryItem =
  | { readonly type: 'system' | 'user'; readonly text: string }
  | { readonly type: 'model'; readonly response: readonly string[] }

export interface LlamaChat {
  generateResponse(
    history: readonly HistoryItem[],
    options: SamplingOptions & {
      onResponseChunk(chunk: { readonly segmentType: 'thought' | 'comment' | undefined; readonly text: string }): void
    } & Readonly<Record<string, unknown>>,
  ): Promise<{ readonly metadata: { readonly stopReason: string } }>
  dispose(options: object): void
}

export const importLibrary = async (): Promise<LlamaLibrary> => {
  // The package name is in a variable, so that the compiler does not try to resolve the optional package.
  const name: string = 'node-llama-cpp'
  return (await import(name)) as LlamaLibrary
}
