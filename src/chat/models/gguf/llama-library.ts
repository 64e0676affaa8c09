/** The part of `node-llama-cpp` that we use. The package is optional, so its types are not available. */
export interface LlamaLibrary {
  getLlama(options: {
    readonly gpu: false
    readonly build: 'never'
    readonly skipDownload: true
    readonly maxThreads: number
    readonly progressLogs: false
    readonly logLevel: 'error'
    logger(level: string, message: string): void
  }): Promise<Llama>
  resolveChatWrapper(
    model: LlamaModel,
    options: { readonly type?: 'general'; readonly warningLogs: false },
  ): ChatWrapper
  readonly LlamaGrammarEvaluationState: new (options: {
    readonly model: LlamaModel
    readonly grammar: object
  }) => object
  readonly LlamaChat: new (options: {
    readonly contextSequence: TokenSequence
    readonly chatWrapper: ChatWrapper
  }) => LlamaChat
  readonly InsufficientMemoryError: new () => Error
}

export interface Llama {
  loadModel(options: { readonly modelPath: string; readonly loadSignal: AbortSignal }): Promise<LlamaModel>
  createGrammar(options: { readonly grammar: string }): Promise<object>
}

export type TokenId = number

export interface LlamaModel {
  /** Opaque to us. */
  readonly tokenizer: object
  readonly trainContextSize: number
  readonly fileInfo: { readonly metadata: { readonly tokenizer?: { readonly chat_template?: string } } }
  readonly fileInsights: {
    estimateContextResourceRequirements(options: { readonly contextSize: number; readonly modelGpuLayers: 0 }): {
      readonly cpuRam: number
    }
  }
  createContext(options: {
    readonly contextSize: number
    readonly threads: number
    readonly createSignal: AbortSignal
  }): Promise<LlamaContext>
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
      readonly maxTokens: number
      readonly signal: AbortSignal
      readonly contextShift: { readonly size: number }
      onResponseChunk(chunk: { readonly segmentType: 'thought' | 'comment' | undefined; readonly text: string }): void
    },
  ): Promise<{ readonly metadata: { readonly stopReason: string } }>
  dispose(options: { readonly disposeSequence: false }): void
}

export const importLibrary = async (): Promise<LlamaLibrary> => {
  // The package name is in a variable, so that the compiler does not try to resolve the optional package.
  const name: string = 'node-llama-cpp'
  return (await import(name)) as LlamaLibrary
}
