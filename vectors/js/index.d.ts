export type Operation =
  | 'frequencies' | 'cos_sin' | 'rotate' | 'model' | 'rekey' | 'positions' | 'bias' | 'mask' | 'scores' | 'added';
export type DType = 'float64' | 'float32' | 'float16' | 'bfloat16';
export type Numbers = number | null | ArrayLike<number> | Iterable<Numbers>;
export interface Vector {
  operation: Operation;
  id: string;
  about?: string;
  input: Record<string, any>;
  output: Record<string, Numbers>;
  mistakes: Record<string, Record<string, Numbers>>;
}
export interface Mistake {
  title: string;
  cure: string;
  report?: string;
  loss?: true;
}
export declare const operations: Operation[];
export declare function mistakes(): Record<string, Mistake>;
export declare function load(operation: Operation): Vector[];
export declare function judge(test: Vector, answer: Record<string, Numbers>, dtype?: DType): { right: boolean; shows: string[] };
export declare function expectRight(test: Vector, answer: Record<string, Numbers>, dtype?: DType): void;
