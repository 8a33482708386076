/** The operations: what the core and the readers of arguments know of each. */
import type { Operation, OperationName } from '../call/call.js';
import { resultOfGemm, resultOfMatMul, resultOfNBits, resultOfQuantized } from '../call/result.js';

/** @param number its index in kOperations of bindings/embind.cc */
function operationOf(
  name: OperationName,
  number: number,
  operands: Operation['operands'],
  resultType: Operation['resultType'],
  matrices: readonly string[] = operands,
): Operation {
  return {
    name,
    operands,
    matrices,
    resultType,
    run: (module, end) => module.compute(number, end),
    explain: (module, beside) => module.explain(number, beside),
  };
}

/** A product of 8-bit operands. A number in the block tells the core which one it is. */
function quantizedMatMul(name: OperationName, addend = 'bias'): Operation {
  return operationOf(name, 2, ['A', 'B', addend], resultOfQuantized);
}

/** @internal */
export const operations: Record<OperationName, Operation> = {
  gemm: operationOf('gemm', 0, ['A', 'B', 'C'], resultOfGemm),
  matmul: operationOf('matmul', 1, ['src', 'weights', 'bias'], resultOfMatMul),
  qgemm: quantizedMatMul('qgemm', 'C'),
  matmulInteger: quantizedMatMul('matmulInteger'),
  qlinearMatmul: quantizedMatMul('qlinearMatmul'),
  dynamicQuantizeMatmul: quantizedMatMul('dynamicQuantizeMatmul'),
  matmulIntegerToFloat: quantizedMatMul('matmulIntegerToFloat'),
  matmulNBits: operationOf('matmulNBits', 3, ['A', 'B', 'bias'], resultOfNBits, ['A', 'bias']),
};

/** @internal */
export function isOperation(name: unknown): name is OperationName {
  return typeof name === 'string' && Object.hasOwn(operations, name);
}
